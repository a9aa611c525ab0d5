// SPDX-License-Identifier: GPL-2.0-only
export interface ErrorBody { code: string; message: string; hint: string | null; place: { file: string; line: number; column: number } | null }
export interface Condition { signal: string; measured: string | null; comparison: string; threshold: string; holds: boolean }
export interface Proposal { strategy: string; reason: string; unsupported: string; wins: string[]; conditions: Condition[] }
export interface Knob { value: string | null; original: string | null; owner: string }
export interface Wish { kind: string; knob: string | null; value: string | null; who: string; since_unix_ns: number; until_unix_ns: number | null; left_ns: number | null }
export interface Path { op: string; path: string; ios: number; bytes: number; p50_ns: number | null; p99_ns: number | null }
export interface Gate { kind: string; rate_bytes_per_s: number; depth_ios: number; state: string; since_ns: number; reason: string }
export interface Volume {
  volume: string; title: string; kind: string; mode: string; policy: string; overlay: string | null; held: boolean;
  now: string; kernel_sleep: { left_s: number; text: string } | null; regime: string; gate: Gate;
  dirty_bytes: number | null; dirty_ratio: number | null; cache_bytes: number | null; in_use_ratio: number | null; room_bytes: number | null;
  time_to_full_s: number | null; time_to_clean_s: number | null; never?: string[]; idle: boolean | null; wait_ns: number; wait_learned: boolean;
  destage_bytes_per_s: number | null; backing_depth_ios: number | null;
  foreground: Record<string, { iops: number; bytes_per_s: number }> | null;
  paths: Path[]; bypass_bytes: Record<string, number>; gap_counts: number[]; run_bytes: Record<string, number[]>;
  knobs: Record<string, Knob>; proposals: Proposal[]; wishes: Wish[]; missing: Record<string, string>; lost: Record<string, number>;
  at_unix_s: number; age_s: number; stale: boolean; hit_ratio: number | null; dirty_floor_bytes: number | null; cutoff_dirty_bytes: number | null;
}
export interface Volumes { now_unix_s: number; daemon_alive: boolean; volumes: Volume[] }
export interface Action { id: number; at_unix_s: number; volume: string; knob: string; old: string | null; new: string; strategy: string; reason: string; outcome: string; read_back: string | null; error: string | null; decision_id: number | null }
export interface Decision { id: number; at_unix_s: number; volume: string; acted: boolean; gate: string | null; gate_strategy: string; sequential_cutoff_bytes: number | null; cutoff_strategy: string; reason: string; actions: Action[] }
export interface DecisionFull extends Decision { proposals: Proposal[] }
export interface Decisions { decisions: Decision[]; next_before_id: number | null }
export interface Intent { id: number; kind: string; volume: string | null; args: Record<string, unknown>; who: string; at_unix_s: number; resolved_unix_s: number | null; ok: boolean | null; outcome: string | null }
export interface Health { version: string; daemon: { alive: boolean; pid: number | null; version: string | null; at_unix_s: number | null; age_s: number | null; errors: string[]; [more: string]: unknown }; history: { ok: boolean; why: string | null }; intents: { ok: boolean; why: string | null }; now_unix_s: number }
export interface Samples { volume: string; span_s: number; at_unix_s: number[]; columns: Record<string, (number | null)[]>; paths: Record<string, Record<string, (number | null)[]>> }
export interface Latency { volume: string; op: string; span_s: number; at_unix_s: number[]; edges_s: number[]; counts: (number[] | null)[] }
export interface Advice { id: string; volume: string; title: string; weight: string; about: string; text: string; evidence: string[]; effect: string | null; command: string | null; can_apply: boolean; why_not: string | null; undo: string | null }
export interface AdviceList { advice: Advice[] }
export interface PolicyError { file: string; line: number; column: number; message: string; expected: string | null; nearest: string | null }
export interface Policies { files: { name: string; path: string; ok: boolean; errors: PolicyError[]; text: string }[]; shipped: { name: string; why: string; text: string }[]; effective: { volume: string; policy: string; overlay: string | null; file: string | null }[] }
export interface Checked { ok: boolean; errors: PolicyError[] }
export interface Difference { at_unix_s: number; until_unix_s: number; setting: string; before: string | null; after: string | null; why_before: string | null; why_after: string | null }
export interface DryRun { from_unix_s: number; until_unix_s: number; frames: number; coverage_ratio: number; differences: Difference[]; notes: string[] }
export type ExplainedDecision = DecisionFull
export interface Actions { actions: Action[] }
export type Doctor = unknown
