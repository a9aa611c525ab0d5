// SPDX-License-Identifier: GPL-2.0-only
// Short names for the server's types, which are generated from openapi.json.
import type { components } from "./schema";

type Schemas = components["schemas"];

export type AbsentVolume = Schemas["AbsentVolume"];
export type Advice = Schemas["Advice"];
export type AdviceList = Schemas["AdviceList"];
export type AppliedAdvice = Schemas["AppliedAdvice"];
export type Attribution = Schemas["Attribution"];
export type Checked = Schemas["PolicyCheck"];
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
export type Difference = Schemas["DryRunDifference"];
export type DryRun = Schemas["DryRunResult"];
export type ErrorBody = Schemas["ErrorBody"];
export type ExplainedDecision = Schemas["ExplainedDecision"];
export type Gate = Schemas["Gate"];
export type Heat = Schemas["Heat"];
export type Health = Schemas["Health"];
export type Job = Schemas["Job"];
export type Latency = Schemas["Latency"];
export type MissRatio = Schemas["MissRatio"];
export type Pin = Schemas["Pin"];
export type Promotion = Schemas["Promotion"];
export type Proposal = Schemas["Proposal"];
export type Samples = Schemas["Samples"];
export type Volume = Schemas["Volume"];
export type Volumes = Schemas["Volumes"];
export type Override = Schemas["ActiveOverride"];
