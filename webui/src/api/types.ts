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
export type VolumeReport = Schemas["VolumeReport"];
export type Action = Schemas["Action"];
export type Actions = Schemas["Actions"];
export type Condition = Schemas["Condition"];
export type Decision = Schemas["Decision"];
export type Decisions = Schemas["Decisions"];
export type ErrorBody = Schemas["ErrorBody"];
export type ExplainedDecision = Schemas["ExplainedDecision"];
export type Health = Schemas["Health"];
export type Latency = Schemas["Latency"];
export type Proposal = Schemas["Proposal"];
export type Samples = Schemas["Samples"];
export type Volume = Schemas["Volume"];
export type Volumes = Schemas["Volumes"];
export type Wish = Schemas["StandingWish"];
export interface Difference {
  at_unix_s: number;
  until_unix_s: number;
  setting: string;
  before: string | null;
  after: string | null;
  why_before: string | null;
  why_after: string | null;
}
export interface DryRun {
  from_unix_s: number;
  until_unix_s: number;
  frames: number;
  coverage_ratio: number;
  differences: Difference[];
  notes: string[];
}
