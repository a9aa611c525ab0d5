// SPDX-License-Identifier: GPL-2.0-only
// Short names for what the server says; the types themselves are printed from its document.
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Advice = Schemas["AdviceRow"];
export type AdviceList = Schemas["AdviceList"];
export type Checked = Schemas["Checked"];
export type DeviceReport = Schemas["DeviceReport"];
export type DoctorReport = Schemas["DoctorReport"];
export type Intent = Schemas["Intent"];
export type IntentList = Schemas["IntentList"];
export type Policies = Schemas["Policies"];
export type PolicyError = Schemas["PolicyProblem"];
export type Unknown = Schemas["Unknown"];
export type VolumeReport = Schemas["VolumeReport"];
export type Action = Schemas["Action"];
export type Actions = Schemas["Actions"];
export type Condition = Schemas["Condition"];
export type Decision = Schemas["Decision"];
export type Decisions = Schemas["Decisions"];
export type ErrorBody = Schemas["ErrorBody"];
export type ExplainedDecision = Schemas["ExplainedDecision"];
export type Health = Schemas["Health"];
export type Proposal = Schemas["Proposal"];
export type Samples = Schemas["Samples"];
export type Volume = Schemas["Volume"];
export type Volumes = Schemas["Volumes"];
export type Wish = Schemas["StandingWish"];
export interface Intent { id: number; kind: string; volume: string | null; args: Record<string, unknown>; who: string; at_unix_s: number; resolved_unix_s: number | null; ok: boolean | null; outcome: string | null }
export interface Latency { volume: string; op: string; span_s: number; at_unix_s: number[]; edges_s: number[]; counts: (number[] | null)[] }
export interface Advice { id: string; volume: string; title: string; weight: string; about: string; text: string; evidence: string[]; effect: string | null; command: string | null; can_apply: boolean; why_not: string | null; undo: string | null }
export interface AdviceList { advice: Advice[] }
export interface PolicyError { file: string; line: number; column: number; message: string; expected: string | null; nearest: string | null }
export interface Policies { files: { name: string; path: string; ok: boolean; errors: PolicyError[]; text: string }[]; shipped: { name: string; why: string; text: string }[]; effective: { volume: string; policy: string; overlay: string | null; file: string | null }[] }
export interface Checked { ok: boolean; errors: PolicyError[] }
export interface Difference { at_unix_s: number; until_unix_s: number; setting: string; before: string | null; after: string | null; why_before: string | null; why_after: string | null }
export interface DryRun { from_unix_s: number; until_unix_s: number; frames: number; coverage_ratio: number; differences: Difference[]; notes: string[] }
export type Doctor = unknown
