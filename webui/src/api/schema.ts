// SPDX-License-Identifier: GPL-2.0-only
// Printed from openapi.json by `npm run types`; never edited by hand.
export interface paths {
    "/api/v1/advice": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Advice, and what was applied
         * @description The advice of `ebbgate doctor` that an unprivileged process can find; the rest is in
         *     `unknown`.
         */
        get: operations["advice"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/decisions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Decisions
         * @description All recorded decisions, newest first; `before_id` turns the page.
         */
        get: operations["decisions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/decisions/{number}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One decision, explained
         * @description A decision with all comparisons, also of strategies that did not decide.
         */
        get: operations["decision"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/doctor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Report of the doctor
         * @description Kernel, probe, signals, cost and volumes, and what is missing.
         */
        get: operations["doctor"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Live data
         * @description Server-sent events. A browser that returns with Last-Event-ID gets what it missed, up to
         *     1000 events. A comment every 15 s shows that the connection is alive. Where reading needs
         *     the token, the stream ends within half a minute after another one was made.
         */
        get: operations["events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Health
         * @description What works and what does not. Always answers: a missing, locked or damaged database and a
         *     dead daemon are data.
         */
        get: operations["health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/intents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Requests
         * @description Requests and their outcomes, newest first.
         */
        get: operations["intents"];
        put?: never;
        /**
         * Make a request
         * @description Answers once the daemon has accepted or refused the request, which is carried out within
         *     a second or two: follow it by its number, or on the event stream.
         */
        post: operations["add"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/intents/{number}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One request
         * @description A request and its outcome.
         */
        get: operations["intent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policies": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * All policies
         * @description The administrator's files, the shipped policies, and what runs for each volume.
         */
        get: operations["policies"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policies/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check a policy
         * @description Checks a text as if it were a file in the folder. Changes nothing and needs no token.
         */
        post: operations["check"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policies/dry-run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Dry run of a policy
         * @description Compares a policy with another one on the last hours of the history. Changes nothing and
         *     needs no token. It takes up to two minutes, and one runs at a time: others wait for their
         *     turn for about as long, at most two of a client.
         */
        post: operations["dry_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policy-schema": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The policy language
         * @description For editors: every key with its type, range and purpose.
         */
        get: operations["policy_schema"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check the token
         * @description Answers only with a valid token.
         */
        get: operations["token"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/volumes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * All volumes
         * @description All volumes that the daemon follows; none, and why, if the history cannot be read.
         */
        get: operations["volumes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/volumes/{volume}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One volume
         * @description One volume as it is now.
         */
        get: operations["volume"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/volumes/{volume}/actions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Knob writes
         * @description Knob writes of a volume, newest first; by default of the last day.
         */
        get: operations["actions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/volumes/{volume}/latency": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Latencies
         * @description Latencies of requests as a heat map; by default of the last hour.
         */
        get: operations["latency"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/volumes/{volume}/samples": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * History of a volume
         * @description Columns on a regular grid of seconds, minutes or hours; by default the last hour.
         *     Nothing is interpolated: a hole in the history is null in every column.
         */
        get: operations["samples"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * For Prometheus
         * @description All volumes as they are now. If the history cannot be read the scrape fails, so that
         *     Prometheus notices; but if no daemon runs, there need not be one.
         */
        get: operations["metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A volume that is not here, and what is kept for it. A `forget` request drops that. */
        AbsentVolume: {
            /** @description The command that drops it. */
            command: string;
            /** @description What is kept for it. */
            kept: components["schemas"]["KeptChoice"][];
            /** @description Its uuid; null if unknown: then the name counts. */
            uuid: string | null;
            /**
             * @description The name that it had last.
             * @example bcache0
             */
            volume: string;
            /** @description Why nothing of it is applied. */
            why: string;
        };
        /** @description A knob write and its outcome. */
        Action: {
            /** @description When. Unit: s since 1970. */
            at_unix_s: number;
            /** @description The decision behind it; null if it is no longer kept. */
            decision_id: number | null;
            /** @description What went wrong; empty if nothing did. */
            error: string;
            /** @description Its number. */
            id: number;
            /** @description Whether a strategy moved the gate. That happens many times a minute, so one write cannot be undone: to stop it, set the mode to advise. */
            is_gate: boolean;
            /**
             * @description The knob by its kernel name.
             * @example writeback_percent
             */
            knob: string;
            /** @description Time from the edge that caused it to the write. Unit: s. */
            latency_s: number | null;
            /** @description The value that was written. */
            new: string;
            /** @description The value before; null if unknown. */
            old: string | null;
            /** @description changed, unchanged, refused, manual, too_soon, failed. */
            outcome: string;
            /** @description The value that the kernel showed afterwards. */
            read_back: string | null;
            /** @description Why, in a sentence. */
            reason: string;
            /** @description The strategy behind it. */
            strategy: string;
            /** @description The volume. */
            volume: string;
        };
        /** @description Knob writes, newest first. */
        Actions: {
            /** @description Newest first. */
            actions: components["schemas"]["Action"][];
        };
        /** @description An override in force: a hold, a set knob or a drain. */
        ActiveOverride: {
            /** @description hold, set or drain. */
            kind: string;
            /** @description The knob, for `set`. */
            knob: string | null;
            /** @description Time left; null if it lasts until released. Unit: ns. */
            left_ns: number | null;
            /** @description When it began. Unit: ns since 1970. */
            since_unix_ns: number;
            /** @description When it ends; null if it lasts until released. Unit: ns since 1970. */
            until_unix_ns: number | null;
            /** @description Its value as the kernel writes it, for `set`. */
            value: string | null;
            /** @description Who requested it. */
            who: string;
        };
        /** @description A problem, recommendation or note. */
        Advice: {
            /** @description The volume or device. */
            about: string;
            /** @description Whether the daemon can apply it now. */
            can_apply: boolean;
            /** @description The command that does it; null if there is none. */
            command: string | null;
            /** @description The expected effect; null if unknown. */
            effect: string | null;
            /** @description What was measured here. */
            evidence: string[];
            /**
             * @description A number that does not change its meaning.
             * @example EBB-206
             */
            id: string;
            /** @description The line that makes it permanent, for the file named in `lasts`. */
            keep: string | null;
            /** @description What of it survives a reboot; null if there is no command. */
            lasts: string | null;
            /** @description The weight for people: Problem, Recommended or Info. */
            severity: string;
            /** @description What to do and why. */
            text: string;
            /** @description The volume's display name. */
            title: string;
            /** @description The command that undoes it; null if there is none. */
            undo: string | null;
            /** @description The volume. */
            volume: string;
            /** @description fault: data or tuning is at risk; advice: measured here, or harmful whatever the load is; note: information. */
            weight: string;
            /** @description Why not; null if it can. */
            why_not: string | null;
        };
        /** @description All current advice, and what was applied. */
        AdviceList: {
            /** @description By volume. */
            advice: components["schemas"]["Advice"][];
            /** @description In force, newest first. */
            applied: components["schemas"]["AppliedAdvice"][];
            /** @description What could not be checked. */
            unknown: components["schemas"]["NotChecked"][];
        };
        /**
         * @description A recommendation that was applied and is in force. A `release` of each of its knobs undoes
         *     it.
         */
        AppliedAdvice: {
            /** @description When. Unit: s since 1970. */
            at_unix_s: number;
            /**
             * @description Its number.
             * @example EBB-206
             */
            id: string;
            /** @description What it set that is still in force. */
            knobs: components["schemas"]["AppliedKnob"][];
            /** @description The volume's display name. */
            title: string;
            /** @description The volume. */
            volume: string;
            /** @description Who applied it. */
            who: string;
        };
        /** @description A knob that a recommendation has set. */
        AppliedKnob: {
            /**
             * @description The knob by its kernel name.
             * @example sequential_cutoff
             */
            knob: string;
            /** @description Its value as the kernel writes it. */
            value: string;
        };
        /** @description Whose requests missed the cache in the last minutes. Older misses count less. */
        Attribution: {
            /** @description Cgroups with the most misses. */
            cgroups: components["schemas"]["MissedBy"][];
            /** @description Misses of all other cgroups. Unit: requests. */
            cgroups_others: number;
            /** @description Files with the most misses; direct I/O tells none. */
            files: components["schemas"]["MissedBy"][];
            /** @description Misses of all other files. Unit: requests. */
            files_others: number;
            /** @description The time that the misses cover. Unit: ns. */
            observed_ns: number;
            /** @description Why it is unknown; empty if it is known. */
            why: string;
        };
        /** @description Whether a part of ebbgate is available. */
        Availability: {
            /** @description Whether it is available. */
            ok: boolean;
            /** @description Why not; null if it is. */
            why: string | null;
        };
        /** @description A requested cleaning that is under way. */
        CleaningState: {
            /** @description Dirty data when it began. Unit: B. */
            began_with_bytes: number | null;
            /** @description Estimated time left; null if unknown. Unit: s. */
            eta_s: number | null;
            /** @description When it began. CLOCK_MONOTONIC of the machine; comparable within one boot. Unit: ns. */
            since_ns: number;
            /** @description When it is stopped at the latest. CLOCK_MONOTONIC of the machine; comparable within one boot. Unit: ns. */
            until_ns: number;
            /** @description Who requested it. */
            who: string;
        };
        /** @description One value for each time of the grid. Null where nothing was recorded or it is unknown. */
        Columns: {
            /** @description Requests in flight at the backing device. Unit: requests. */
            backing_depth_ios: (number | null)[];
            /** @description Bytes that bypassed the cache within a point. Unit: B. */
            bypass_bytes: (number | null)[];
            /** @description The size of the cache. Unit: B. */
            cache_bytes: (number | null)[];
            /** @description Written back to the disk. Unit: B/s. */
            destage_bytes_per_s: (number | null)[];
            /** @description Dirty data. Unit: B. */
            dirty_bytes: (number | null)[];
            /** @description Data that became dirty. Unit: B/s. */
            dirty_in_bytes_per_s: (number | null)[];
            /** @description The share of reads that were served from the cache. Unit: 1. */
            hit_ratio: (number | null)[];
            /** @description The share of the time without load. Unit: 1. */
            idle: (number | null)[];
            /** @description The share of the cache in use. Unit: 1. */
            in_use_ratio: (number | null)[];
            /** @description Bytes of these requests. Unit: B/s. */
            read_bytes_per_s: (number | null)[];
            /** @description Read requests of users. Unit: requests/s. */
            read_iops: (number | null)[];
            /** @description Until all is written back; null also for never. Unit: s. */
            time_to_clean_s: (number | null)[];
            /** @description Until the kernel stops caching writes; null also for never. Unit: s. */
            time_to_full_s: (number | null)[];
            /** @description Bytes of these requests. Unit: B/s. */
            write_bytes_per_s: (number | null)[];
            /** @description Write requests of users. Unit: requests/s. */
            write_iops: (number | null)[];
        };
        /** @description A comparison of a measured value with a threshold. */
        Condition: {
            /** @description `>=` or `<`. */
            comparison: string;
            /** @description Whether the condition held. */
            holds: boolean;
            /** @description With its unit; null if unknown, then it never holds. */
            measured: string | null;
            /**
             * @description What was measured.
             * @example dirty data
             */
            signal: string;
            /** @description With its unit. */
            threshold: string;
        };
        /** @description The CPU time of the probe, if the kernel counts it. */
        CostReport: {
            /** @description Whether the kernel counts now. */
            counting: boolean;
            /** @description Time that counting itself takes. Unit: ns. */
            empty_run_ns: number;
            /** @description Time of one run; null if unknown. Unit: ns. */
            ns_per_run: number | null;
            /** @description The probe's process ID. */
            pid: number | null;
            /** @description By program. */
            programs: components["schemas"]["ProgramCost"][];
            /** @description Runs of all programs. Unit: runs. */
            runs: number;
            /** @description Why nothing is known; empty if something is. */
            why: string;
            /** @description Length of the measurement. Unit: ns. */
            window_ns: number | null;
        };
        /** @description The daemon, as far as known. */
        DaemonHealth: {
            /** @description Volumes that are not here, for which something is kept; null if unknown. */
            absent: components["schemas"]["AbsentVolume"][] | null;
            /** @description How many there are: `absent` has the first 32. Unit: volumes. */
            absent_count: number | null;
            /** @description How long ago that was. Unit: s. */
            age_s: number | null;
            /** @description Whether it runs; null if unknown. */
            alive: boolean | null;
            /** @description When it last wrote its status. Unit: s since 1970. */
            at_unix_s: number | null;
            /** @description What does not work, one sentence each. */
            errors: string[];
            /** @description Its process ID. */
            pid: number | null;
            /** @description The administrator's policies. */
            policies: components["schemas"]["PolicyStatus"] | null;
            /** @description Its probe. */
            probe: components["schemas"]["ProbeStatus"] | null;
            /** @description When it was started. Unit: s since 1970. */
            started_unix_s: number | null;
            /** @description How often it measures. Unit: s. */
            tick_s: number | null;
            /** @description Its version. */
            version: string | null;
        };
        /** @description The gate that a decision sets. */
        DecidedGate: {
            /** @description The depth that replaces a rate on dm-cache, else 0. Unit: requests. */
            depth_ios: number;
            /** @description released, held, closed, paced, resting or open. */
            kind: string;
            /** @description The rate if paced, what leaks if shut, the highest mean if open. Unit: B/s. */
            rate_bytes_per_s: number;
        };
        /** @description A decision without its explanation. */
        Decision: {
            /** @description Whether a knob was written for it. */
            acted: boolean;
            /** @description Knob writes for it, oldest first. */
            actions: components["schemas"]["Action"][];
            /** @description When. Unit: s since 1970. */
            at_unix_s: number;
            /** @description The strategy that decided the cutoff; empty if none. */
            cutoff_strategy: string;
            /** @description The gate that it sets; null if none. */
            gate: components["schemas"]["DecidedGate"] | null;
            /** @description The strategy that decided the gate; empty if none. */
            gate_strategy: string;
            /** @description Its number. */
            id: number;
            /** @description The reasons of the strategies that decided. */
            reason: string;
            /** @description Run length from which streams bypass the cache; null if not set. Unit: B. */
            sequential_cutoff_bytes: number | null;
            /** @description The volume. */
            volume: string;
        };
        /** @description Decisions, newest first. */
        Decisions: {
            /** @description Newest first. */
            decisions: components["schemas"]["Decision"][];
            /** @description `before_id` of the next page; null if this is the last. */
            next_before_id: number | null;
        };
        /** @description A block device under a volume. */
        DeviceReport: {
            /**
             * @description Its device numbers.
             * @example 254:0
             */
            devno: string;
            /** @description Its name. */
            name: string;
            /** @description Length of its queue. Unit: requests. */
            nr_requests: number | null;
            /** @description Requests that it takes at once. Unit: requests. */
            queue_depth: number | null;
            /** @description Whether it is a hard disk. */
            rotational: boolean | null;
            /** @description Its I/O scheduler. */
            scheduler: string | null;
            /** @description Available schedulers. */
            schedulers: string[];
            /** @description Its size. Unit: B. */
            size_bytes: number;
        };
        /** @description The probe, as the daemon sees it. */
        DoctorProbe: {
            /** @description Which probe; null if unknown. */
            kind: string | null;
            /** @description Its state; null if unknown. */
            state: string | null;
            /** @description Why that is unknown; null if it is known. */
            why: string | null;
        };
        /** @description What works on this machine, and what does not. */
        DoctorReport: {
            /** @description CPU time of the probe. */
            cost: components["schemas"]["CostReport"];
            /** @description The kernel of this machine. */
            kernel: components["schemas"]["Kernel"];
            /** @description What is missing, one sentence each. */
            missing: string[];
            /** @description The probe. */
            probe: components["schemas"]["DoctorProbe"];
            /** @description Each signal: ok, or what is missing. */
            signals: {
                [key: string]: string;
            };
            /** @description What it may not read. */
            unknown: components["schemas"]["NotChecked"][];
            /** @description Volumes that this process may read. */
            volumes: components["schemas"]["VolumeReport"][];
        };
        /** @description A time in which the two policies differed. */
        DryRunDifference: {
            /** @description What this policy would have decided. */
            after: string;
            /** @description From. Unit: s since 1970. */
            at_unix_s: number;
            /** @description What the other policy decided. */
            before: string;
            /** @description What differed: destage, streams and so on. */
            setting: string;
            /** @description Until. Unit: s since 1970. */
            until_unix_s: number;
            /** @description This policy's reason. */
            why_after: string;
            /** @description The other policy's reason. */
            why_before: string;
        };
        /** @description A policy to try on the recorded history of a volume. */
        DryRunRequest: {
            /** @description Name of the policy to compare with; null for the current one. */
            against?: string | null;
            /**
             * @description How far back. Unit: h.
             * @default 24
             */
            hours: number;
            /** @description Text of the policy. */
            text: string;
            /**
             * @description The volume.
             * @example bcache0
             */
            volume: string;
        };
        /** @description How the decisions of a policy would have differed. */
        DryRunResult: {
            /** @description The share of the time that has samples. Unit: 1. */
            coverage_ratio: number;
            /** @description How long each gate would have been set. */
            destage_s: components["schemas"]["DryRunSpent"];
            /** @description In order of time, at most 1000. */
            differences: components["schemas"]["DryRunDifference"][];
            /** @description Samples used. Unit: samples. */
            frames: number;
            /** @description Start of the time. Unit: s since 1970. */
            from_unix_s: number;
            /** @description Shorter differences that are left out. Unit: differences. */
            left_out: number;
            /** @description What the history cannot show, one sentence each. */
            notes: string[];
            /** @description Its end. Unit: s since 1970. */
            until_unix_s: number;
        };
        /** @description How long each policy would have set each gate. */
        DryRunSpent: {
            /** @description This policy, by gate. Unit: s. */
            after: {
                [key: string]: number;
            };
            /** @description The other policy, by gate. Unit: s. */
            before: {
                [key: string]: number;
            };
        };
        /** @description The policy of a volume now. */
        EffectivePolicy: {
            /** @description Its file; null if it is shipped. */
            file: string | null;
            /** @description The part of its schedule that is in force. */
            overlay: string | null;
            /** @description Name of the policy. */
            policy: string;
            /** @description Its display name. */
            title: string;
            /** @description The volume. */
            volume: string;
        };
        /** @description The shape of every answer with a status of 400 or more. */
        Error: {
            /** @description The error. */
            error: components["schemas"]["ErrorBody"];
        };
        /** @description What went wrong and what to do next. */
        ErrorBody: {
            /**
             * @description A stable word, for programs.
             * @example not_found
             */
            code: string;
            /** @description The next step; null if there is none. */
            hint: string | null;
            /** @description What is wrong. */
            message: string;
            /** @description The place in a text; null if unknown. */
            place: components["schemas"]["Place"] | null;
        };
        /** @description A decision with all comparisons. */
        ExplainedDecision: {
            /** @description Whether a knob was written for it. */
            acted: boolean;
            /** @description Knob writes for it, oldest first. */
            actions: components["schemas"]["Action"][];
            /** @description When. Unit: s since 1970. */
            at_unix_s: number;
            /** @description The strategy that decided the cutoff; empty if none. */
            cutoff_strategy: string;
            /** @description The gate that it sets; null if none. */
            gate: components["schemas"]["DecidedGate"] | null;
            /** @description The strategy that decided the gate; empty if none. */
            gate_strategy: string;
            /** @description Its number. */
            id: number;
            /** @description All strategies, also those that did not decide. */
            proposals: components["schemas"]["Proposal"][];
            /** @description The reasons of the strategies that decided. */
            reason: string;
            /** @description Run length from which streams bypass the cache; null if not set. Unit: B. */
            sequential_cutoff_bytes: number | null;
            /** @description The volume. */
            volume: string;
        };
        /** @description The gate of write-back now. */
        Gate: {
            /** @description The depth that replaces a rate on dm-cache, else 0. Unit: requests. */
            depth_ios: number;
            /** @description released (the kernel decides), held, closed, paced, resting or open. */
            kind: string;
            /** @description The rate if paced, what leaks if shut, the highest mean if open. Unit: B/s. */
            rate_bytes_per_s: number;
            /** @description Why, in a sentence. */
            reason: string;
            /** @description When this state began. CLOCK_MONOTONIC of the machine; comparable within one boot. Unit: ns. */
            since_ns: number;
            /** @description unknown, normal, wait, destage or pressure. */
            state: string;
        };
        /** @description What works and what does not. */
        Health: {
            /** @description The daemon. */
            daemon: components["schemas"]["DaemonHealth"];
            /** @description Reading the history, the source of all figures. */
            history: components["schemas"]["Availability"];
            /** @description Requests to the daemon. */
            intents: components["schemas"]["Availability"];
            /** @description The time of this answer. Unit: s since 1970. */
            now_unix_s: number;
            /** @description Version of ebbgate-web. */
            version: string;
        };
        /** @description Where users missed the cache in the last minutes. Older misses count less. */
        Heat: {
            /** @description The size of each part in `bins`. Unit: B. */
            bin_bytes: number;
            /** @description Misses by part of the volume, from its start. Unit: requests. */
            bins: number[];
            /** @description Chunks with the most misses. */
            chunks: components["schemas"]["MissedChunk"][];
            /** @description Files and relations with the most misses; empty where no file is known. */
            groups: components["schemas"]["MissedGroup"][];
            /** @description How many chunks of each part are left out to compare; empty for none. Unit: chunks. */
            held_out: number[];
            /** @description All misses. Unit: requests. */
            misses: number;
            /** @description How many chunks of each part `promote_hot` has moved of late; empty for none. Unit: chunks. */
            moved: number[];
            /** @description The time that `misses` covers. Unit: ns. */
            observed_ns: number;
            /** @description How many chunks of each part are chosen and still to be moved; empty for none. Unit: chunks. */
            pending: number[];
            /** @description Those of which the place is unknown. Unit: requests. */
            unlisted: number;
            /** @description Why it is unknown; empty if it is known. */
            why: string;
        };
        /** @description A part of the volume that is worth a move into the cache. */
        HotChunk: {
            /** @description Its number from the start of the volume, in chunks of 1 MiB. Unit: chunks. */
            chunk: number;
            /** @description The file or relation that it belongs to, or empty. */
            group: string;
            /** @description Predicted misses of users. Unit: requests/s. */
            miss_iops: number;
            /** @description pending, moved, failed or held out. */
            state: string;
        };
        /** @description A file of which something is worth a move into the cache. */
        HotGroup: {
            /** @description How much of it, in chunks of 1 MiB. Unit: chunks. */
            chunks: number;
            /** @description The file or relation; empty for data of no known file. */
            name: string;
        };
        /** @description A request of a person, and its outcome. */
        Intent: {
            /** @description Its arguments; long texts are shortened. */
            args: {
                [key: string]: unknown;
            };
            /** @description When. Unit: s since 1970. */
            at_unix_s: number;
            /** @description Its number. */
            id: number;
            /**
             * @description What was requested.
             * @example mode
             */
            kind: string;
            /** @description Whether it was carried out; null if not yet known. */
            ok: boolean | null;
            /** @description The outcome in a sentence; null if not yet known. */
            outcome: string | null;
            /** @description When the outcome was known; null if it is not yet. Unit: s since 1970. */
            resolved_unix_s: number | null;
            /** @description The volume; null for all or none. */
            volume: string | null;
            /** @description Who requested it: a user of the machine, and the name given on the page. */
            who: string;
        };
        /**
         * @description What a person may request.
         * @enum {string}
         */
        IntentKind: "mode" | "hold" | "restore" | "clean" | "set" | "drain" | "release" | "apply" | "undo" | "policy_save" | "policy_remove" | "warm" | "job" | "hot" | "pin" | "unpin" | "forget";
        /** @description Requests, newest first. */
        IntentList: {
            /** @description Newest first. */
            intents: components["schemas"]["Intent"][];
        };
        /** @description A warm-up: a file or a range that is read into the cache. */
        Job: {
            /** @description The highest rate; null for none. Unit: B/s. */
            bandwidth_bytes_per_s: number | null;
            /** @description When it was over; null while it is not. Unit: ns since 1970. */
            ended_unix_ns: number | null;
            /** @description Share of a sample that was read from the cache again; null before the check. Unit: 1. */
            hit_ratio: number | null;
            /** @description Its number, for `job` requests. */
            id: number;
            /** @description Bytes that cannot be warmed, by reason. Unit: B. */
            left_out: {
                [key: string]: number;
            };
            /** @description What users' misses have brought into a dm-cache since it began; null where the kernel counts none. Unit: cache blocks. */
            other_promotions: number | null;
            /** @description How often it waited because more of these came while it read. Unit: times. */
            promotion_holds: number;
            /** @description Read in the pass under way. Unit: B. */
            read_bytes: number;
            /** @description When it was requested. Unit: ns since 1970. */
            since_unix_ns: number;
            /** @description reading, checking, waiting, paused, done, failed or cancelled. */
            state: string;
            /**
             * @description The file, or the range of the volume in bytes.
             * @example /srv/db
             */
            target: string;
            /** @description To be read in each pass. Unit: B. */
            total_bytes: number;
            /** @description Who requested it. */
            who: string;
            /** @description Why it waits or has failed, or its result; empty while it reads. */
            why: string;
        };
        /** @description Something that was chosen for a volume. */
        KeptChoice: {
            /** @description When; null if unknown. Unit: s since 1970. */
            since_unix_s: number | null;
            /**
             * @description In a few words.
             * @example mode enforce
             */
            what: string;
        };
        /** @description The running kernel. */
        Kernel: {
            /** @description Whether it has type information (BTF), which the probe needs. */
            btf: boolean;
            /** @description Its version. */
            release: string;
        };
        /** @description A sleep of the kernel's writeback thread that no knob ends. */
        KernelSleep: {
            /** @description The longest time that it may still last. Unit: s. */
            left_s: number;
            /** @description What that means, in a sentence. */
            text: string;
        };
        /** @description A setting of the kernel. */
        Knob: {
            /** @description The value before ebbgate; null if ebbgate has not changed it. */
            original: string | null;
            /** @description kernel, ebbgate, or manual (changed by someone else since). */
            owner: string;
            /** @description Whether users can set it through ebbgate, within its bounds. */
            settable: boolean;
            /** @description As the kernel writes it; null if unknown. */
            value: string | null;
        };
        /** @description A knob, and whether ebbgate changes it. */
        KnobReport: {
            /** @description What it does. */
            about: string;
            /** @description Its kernel name. */
            name: string;
            /** @description The value before ebbgate. */
            original: string | null;
            /** @description kernel, ebbgate or manual; unknown where ebbgated gives no status. */
            owner: string;
            /** @description Its file. */
            path: string;
            /** @description tuned (in enforce), shown, or manual. */
            touch: string;
            /** @description As the kernel writes it. */
            value: string | null;
        };
        /** @description Requests of users by time and latency. */
        Latency: {
            /** @description Start of each point. Unit: s since 1970. */
            at_unix_s: number[];
            /** @description Requests by bucket, for each point; null if unknown. Unit: requests. */
            counts: (number[] | null)[];
            /** @description Upper edges of the buckets, ascending; the last bucket includes slower requests. Unit: s. */
            edges_s: number[];
            /** @description read or write. */
            op: string;
            /** @description Length of a point. Unit: s. */
            span_s: number;
            /** @description The volume. */
            volume: string;
        };
        /** @description What is known of the files that the policy names for `promote_hot`. */
        Layout: {
            /** @description Why they could not be read, or about the first file left out; empty if none. */
            error: string;
            /** @description Files of which it is known where on the volume they lie. Unit: files. */
            files: number;
            /** @description Their data on the volume. Unit: B. */
            known_bytes: number;
            /** @description The other files, by reason. Unit: files. */
            left_out: {
                [key: string]: number;
            };
            /** @description When they were read; null if never. CLOCK_MONOTONIC of the machine; comparable within one boot. Unit: ns. */
            read_ns: number | null;
        };
        /**
         * @description The share of reads that caches of other sizes would miss, from a sample of the blocks.
         *
         *     The model is a cache that takes in every block of 4 KiB that is read or written and evicts the
         *     least recently used one. Reads of a day ago count half.
         */
        MissRatio: {
            /** @description The share of reads that a cache of each size would miss. Unit: 1. */
            miss_ratios: number[];
            /** @description How long reads have been observed. Unit: ns. */
            observed_ns: number;
            /** @description With fewer sampled reads there are no ratios. Unit: reads. */
            reads_min: number;
            /** @description Sampled reads that it rests on; old ones count less. Unit: reads. */
            sampled_reads: number;
            /** @description Sizes of the cache, rising by a factor of 2^(1/4); the middle one is the present size. Unit: B. */
            sizes_bytes: number[];
        };
        /** @description A cgroup or a file whose requests missed the cache of late. Older misses count less. */
        MissedBy: {
            /** @description The cgroup's path or the file; empty for all of which none is known. */
            name: string;
            /** @description Reads that missed it. Unit: requests. */
            reads: number;
            /** @description Writes that went to the backing device. Unit: requests. */
            writes: number;
        };
        /** @description A part of the volume that users missed in the cache of late. */
        MissedChunk: {
            /** @description Its number from the start of the volume, in chunks of 1 MiB. Unit: chunks. */
            chunk: number;
            /** @description The file or relation that it belongs to, or empty. */
            group: string;
            /** @description Requests that missed it; older ones count less. Unit: requests. */
            misses: number;
            /** @description What `promote_hot` does with it: pending, moved, failed or held out; null: nothing. */
            state: string | null;
        };
        /** @description A file or relation that users missed in the cache of late. */
        MissedGroup: {
            /** @description Its size; null for data of no known file. Unit: chunks. */
            chunks: number | null;
            /** @description Chunks of it that are left out to compare. Unit: chunks. */
            held_out: number;
            /** @description Requests that missed it; older ones count less. Unit: requests. */
            misses: number;
            /** @description Chunks of it that `promote_hot` has moved of late. Unit: chunks. */
            moved: number;
            /** @description The file or relation; empty for all data of no known file. */
            name: string;
            /** @description Chunks of it that are chosen and still to be moved. Unit: chunks. */
            pending: number;
        };
        /** @description A request to the daemon, which carries it out within a second or two. */
        NewIntent: {
            /**
             * @description The arguments, by kind. mode (Set the mode of a volume.): mode: observe, advise or enforce. hold (Freeze all knobs at their present values, or end the hold.): on?: true (default): hold; false: end the hold; for_ns?: how long, in ns; default: until released. restore (Restore all original values; the mode becomes advise.): none. clean (Write all dirty data of a dm-cache or dm-writecache volume back now.): within_ns: give up after this time, in ns. set (Set a knob to a value that no strategy changes.): knob: the kernel's name of a knob; value: with a unit, or in the kernel's unit; for_ns?: how long, in ns; default: until released. drain (Write all dirty data back within a time.): for_ns: the time, in ns. release (Return a knob to ebbgate; without one: all knobs; ends hold and drain.): knob?: the kernel's name of a knob. apply (Apply an advice: set all its knobs, or none, until they are released.): id: number of the advice, such as EBB-206; it must apply now. undo (Undo a knob write: set the value before it, until it is released.): action_id: number of the knob write in the history. policy_save (Save a policy and use it at once; the former text is kept in NAME.yaml~.): name: name of the file, without .yaml; text: the policy; the whole request at most 64 KiB. policy_remove (Remove a policy; its text is kept in NAME.yaml~.): name: name of the file, without .yaml. warm (Read a file, or a range of a volume, so that the kernel caches it: a job.): path?: the file; then without a volume; from_bytes?: where the range begins (default 0); to_bytes?: where the range ends; ranges?: hot ranges instead of a path or a range; chunk_bytes?: the unit of the ranges; uuid?: of the volume with the ranges, if unnamed; bandwidth_bytes_per_s?: the highest rate. job (Pause, resume or cancel a job.): job: number of the job; action: pause, resume or cancel. hot (Tell which parts of a volume were used last; the control socket alone has the answer.): none. pin (Keep a file in the cache until it is unpinned or gone.): path: the file. unpin (End a pin, given by its number or its path.): pin?: number of the pin; path?: the pinned file. forget (Drop what is kept for a volume that is not here.): absent: its uuid, or the name that it had last.
             * @default {}
             * @example {
             *       "mode": "enforce"
             *     }
             */
            args: {
                [key: string]: unknown;
            };
            /**
             * @description What is requested.
             * @example mode
             */
            kind: components["schemas"]["IntentKind"];
            /** @description The volume; null for all, where that makes sense. */
            volume?: string | null;
        };
        /** @description What could not be checked, and why. */
        NotChecked: {
            /** @description The volume's display name. */
            title: string | null;
            /** @description The volume; null if unknown. */
            volume: string | null;
            /** @description The reason, and the next step. */
            why: string;
        };
        /**
         * @description The outcome of an action.
         *
         *     - `manual`: someone else has written the knob, so it is left alone until released.
         *     - `too_soon`: the knob was written a moment ago; the action may be tried again.
         * @enum {string}
         */
        OutcomeKind: "changed" | "unchanged" | "refused" | "manual" | "too_soon" | "failed";
        /** @description One path (`read hit`) on the same grid. */
        PathColumns: {
            /** @description Bytes of these requests. Unit: B. */
            bytes: (number | null)[];
            /** @description Requests within a point. Unit: requests. */
            ios: (number | null)[];
            /** @description The median latency. Unit: s. */
            p50_s: (number | null)[];
            /** @description The 99th percentile of latency. Unit: s. */
            p99_s: (number | null)[];
        };
        /** @description Requests of users that took one path in the last second. */
        PathFigures: {
            /** @description Bytes of these requests. Unit: B. */
            bytes: number;
            /** @description Requests. Unit: requests. */
            ios: number;
            /** @description read or write. */
            op: string;
            /** @description The median latency; null without requests. Unit: ns. */
            p50_ns: number | null;
            /** @description The 99th percentile of latency; null without requests. Unit: ns. */
            p99_ns: number | null;
            /** @description hit, miss, bypass, writeback or writethrough. */
            path: string;
        };
        /** @description A pinned file: it is kept in the cache. */
        Pin: {
            /** @description Share of the cache that this takes, of dm-cache in whole blocks; null if unknown. Unit: 1. */
            cache_ratio: number | null;
            /** @description Share of the last touches that were read from the cache; null before the first. Unit: 1. */
            hit_ratio: number | null;
            /** @description Its number, for `unpin` requests. */
            id: number;
            /**
             * @description The file.
             * @example /srv/db
             */
            path: string;
            /** @description When it was pinned. Unit: ns since 1970. */
            since_unix_ns: number;
            /** @description What of it can be cached; null before it was opened. Unit: B. */
            size_bytes: number | null;
            /** @description warming, hot, cold, absent, too_large or elsewhere. */
            state: string;
            /** @description When it was touched last; null before that. Unit: ns since 1970. */
            touched_unix_ns: number | null;
            /** @description Who pinned it. */
            who: string;
            /** @description Why it is in this state; empty while all of it is hot. */
            why: string;
        };
        /** @description A place in a text. */
        Place: {
            /** @description From 1. Unit: column. */
            column: number;
            /** @description Name of the file, or of the part of the request. */
            file: string;
            /** @description From 1. Unit: line. */
            line: number;
        };
        /** @description All policies of the machine. */
        Policies: {
            /** @description What runs for each volume. */
            effective: components["schemas"]["EffectivePolicy"][];
            /** @description The administrator's, in order of precedence. */
            files: components["schemas"]["PolicyFile"][];
            /** @description Folder of the administrator's files. */
            folder: string;
            /** @description Why the folder cannot be read; null if it can. */
            folder_why: string | null;
            /** @description Policies shipped with ebbgate. */
            shipped: components["schemas"]["ShippedPolicy"][];
        };
        /** @description The result of a check. */
        PolicyCheck: {
            /** @description Errors. */
            errors: components["schemas"]["PolicyProblem"][];
            /** @description Keys that have no effect. */
            notes: components["schemas"]["PolicyProblem"][];
            /** @description Whether the policy is valid. */
            ok: boolean;
        };
        /** @description A policy file of the administrator. */
        PolicyFile: {
            /** @description Errors. */
            errors: components["schemas"]["PolicyProblem"][];
            /** @description File name without extension, as `policy_save` and `policy_remove` take it. */
            name: string;
            /** @description Whether it is valid together with the others. */
            ok: boolean;
            /** @description The whole path. */
            path: string;
            /** @description Its text; null if it cannot be read. */
            text: string | null;
        };
        /** @description An error in a policy, or a key without effect, with its place. */
        PolicyProblem: {
            /** @description From 1. Unit: column. */
            column: number;
            /** @description What was expected; null if unknown. */
            expected: string | null;
            /** @description The file. */
            file: string;
            /** @description From 1. Unit: line. */
            line: number;
            /** @description What is wrong. */
            message: string;
            /** @description The nearest known word; null if none is near. */
            nearest: string | null;
        };
        /** @description The administrator's policy files, as the daemon sees them. */
        PolicyStatus: {
            /** @description Their folder. */
            folder: string;
            /** @description Whether the last valid ones stay in force. */
            kept: boolean;
            /** @description Valid policies, in order of precedence. */
            names: string[];
            /** @description Keys that have no effect, each with its place. */
            notes: string[];
            /** @description Errors, each with its place. */
            problems: string[];
        };
        /** @description A policy to check as if it were a file in the folder. */
        PolicyText: {
            /**
             * @description File name without extension.
             * @example night
             */
            name: string;
            /** @description Its text. */
            text: string;
        };
        /** @description The probe, as the daemon sees it. */
        ProbeStatus: {
            /** @description Lines that were not a record. Unit: lines. */
            bad_lines: number;
            /** @description What it lost or refused, by kind. */
            complaints: {
                [key: string]: string;
            };
            /**
             * @description Which probe.
             * @example ebpf
             */
            kind: string;
            /** @description How often it was restarted. Unit: restarts. */
            restarts: number;
            /** @description Each signal: ok, or what is missing. */
            signals: {
                [key: string]: string;
            };
            /**
             * @description Its state.
             * @example running
             */
            state: string;
        };
        /** @description One BPF program of the probe. */
        ProgramCost: {
            /** @description Its number in the kernel. */
            id: number;
            /** @description Its name. */
            name: string;
            /** @description Time of one run; null if it did not run. Unit: ns. */
            ns_per_run: number | null;
            /** @description The time that it took. Unit: ns. */
            run_ns: number;
            /** @description How often it ran. Unit: runs. */
            runs: number;
        };
        /** @description What `promote_hot` does: it moves what users miss into the cache. */
        Promotion: {
            /** @description How long the reads took. Unit: ns. */
            busy_ns: number;
            /** @description Chunks with the most misses that are worth a move. */
            chunks: components["schemas"]["HotChunk"][];
            /** @description Disk time that moves have cost, with what they displaced. Unit: ns. */
            cost_ns: number | null;
            /** @description Not read, or, estimated likewise, not taken by the cache. Unit: B. */
            failed_bytes: number;
            /** @description Files with the most chunks that are worth a move. */
            groups: components["schemas"]["HotGroup"][];
            /** @description Worth a move, but left out to compare. Unit: B. */
            held_out_bytes: number;
            /** @description Moved into the cache since the daemon follows the volume; for bcache estimated: one chunk of up to 16 is looked for in the cache. Unit: B. */
            moved_bytes: number;
            /** @description The process that reads: moving, waiting or idle. */
            mover: string;
            /** @description Why that process waits, or empty. */
            mover_why: string;
            /** @description What users' misses have brought into a dm-cache since the daemon follows the volume; null where the kernel counts none. Unit: cache blocks. */
            other_promotions: number | null;
            /** @description Still to be moved of what is chosen. Unit: B. */
            pending_bytes: number;
            /** @description unknown, learns, moves, rests, stopped or stands down. */
            phase: string;
            /** @description How often reads of moves and warm-ups were stopped because more of these came beside them. Unit: times. */
            promotion_holds: number;
            /** @description What it does now and why, in a sentence. */
            reason: string;
            /** @description Its error. Unit: ns. */
            saved_error_ns: number | null;
            /** @description Disk time of users that moves have saved so far, measured against what was held out; null before anything was measured. Unit: ns. */
            saved_ns: number | null;
            /** @description Share of time in which it may read; null if unknown. Unit: 1. */
            time_share: number | null;
            /** @description What may still be written to the cache today before moves end; negative if more was written; null without the limit `ssd_writes`, or unknown. Unit: B. */
            write_budget_left_bytes: number | null;
        };
        /** @description What one strategy, rule or override proposes, and why. */
        Proposal: {
            /** @description The comparisons that it made. */
            conditions: components["schemas"]["Condition"][];
            /** @description Why, in a sentence. */
            reason: string;
            /**
             * @description Its name.
             * @example idle_destage
             */
            strategy: string;
            /** @description Why it does not work here; empty if it does. */
            unsupported: string;
            /** @description The settings that it decided. */
            wins: string[];
        };
        /** @description The load of users in one direction. */
        Rates: {
            /** @description Bytes of these requests. Unit: B/s. */
            bytes_per_s: number;
            /** @description Requests that arrived. Unit: requests/s. */
            iops: number;
        };
        /** @description The history of a volume on a regular grid. */
        Samples: {
            /** @description Start of each point. Unit: s since 1970. */
            at_unix_s: number[];
            /** @description Each as long as `at_unix_s`. Null where nothing was recorded. */
            columns: components["schemas"]["Columns"];
            /** @description The mode at each point, or hold. Null where nothing was recorded. */
            mode: (string | null)[];
            /** @description By path, for example `read hit`. */
            paths: {
                [key: string]: components["schemas"]["PathColumns"];
            };
            /** @description Start of the first point. Unit: s since 1970. */
            since_unix_s: number;
            /** @description Length of a point: 1, 60 or 3600. Unit: s. */
            span_s: number;
            /** @description The end of the last point. Unit: s since 1970. */
            until_unix_s: number;
            /** @description The volume. */
            volume: string;
        };
        /** @description A policy shipped with ebbgate. */
        ShippedPolicy: {
            /** @description Its name. */
            name: string;
            /** @description Its text. */
            text: string;
            /** @description Its purpose in a sentence. */
            why: string;
        };
        /** @description The answer to a valid token. */
        TokenCheck: {
            /** @description Always true; an invalid token is an error. */
            ok: boolean;
        };
        /** @description A volume as the daemon last saw it. Unknown values are null, never zero. */
        Volume: {
            /** @description How long ago that was. Unit: s. */
            age_s: number;
            /** @description When its figures were measured. CLOCK_MONOTONIC of the machine; comparable within one boot. Unit: ns. */
            at_ns: number;
            /** @description When the daemon wrote this status. Unit: s since 1970. */
            at_unix_s: number;
            /** @description Whose requests missed the cache; null from an older daemon. */
            attribution: components["schemas"]["Attribution"] | null;
            /** @description Requests in flight at the backing device. Unit: requests. */
            backing_depth_ios: number | null;
            /** @description Whether its disks turn: active, idle, standby or unknown. Of several, the most awake one. */
            backing_state: string;
            /** @description Why `backing_state` is unknown; empty if it is known. */
            backing_state_why: string;
            /** @description Bytes past the cache in the last second, by reason. Unit: B. */
            bypass_bytes: {
                [key: string]: number;
            };
            /** @description Size of the cache. Unit: B. */
            cache_bytes: number | null;
            /** @description writeback, writethrough and so on. */
            cache_mode: string | null;
            /** @description A cleaning under way; null if there is none. */
            cleaning: components["schemas"]["CleaningState"] | null;
            /** @description Dirty data at which the kernel stops caching writes. Unit: B. */
            cutoff_dirty_bytes: number | null;
            /** @description Written back to the disk. Unit: B/s. */
            destage_bytes_per_s: number | null;
            /** @description Data in the cache that is newer than on the disk. Unit: B. */
            dirty_bytes: number | null;
            /** @description Below this no idle gap is used for write-back. Unit: B. */
            dirty_floor_bytes: number | null;
            /** @description Dirty data as a share of the cache. Unit: 1. */
            dirty_ratio: number | null;
            /** @description How much longer requests took right after the last gap in which data was written back. Unit: ns. */
            disturbance_ns: number | null;
            /** @description The load of users by read and write. */
            foreground: {
                [key: string]: components["schemas"]["Rates"];
            } | null;
            /** @description Whether all knobs are frozen. */
            frozen: boolean;
            /** @description Idle gaps, older ones count less. Bucket i: [2^i, 2^(i+1)) microseconds. Unit: gaps. */
            gap_counts: number[];
            /** @description The gate of write-back. */
            gate: components["schemas"]["Gate"];
            /** @description Where users missed the cache; null from an older daemon. */
            heat: components["schemas"]["Heat"] | null;
            /** @description The share of read requests of the last five minutes that found all their data in the cache. Partial hits count as misses, bypassed reads as reads. Null without reads. Unit: 1. */
            hit_ratio: number | null;
            /** @description The time that `hit_ratio` covers. Unit: s. */
            hit_ratio_window_s: number;
            /** @description Whether there is no load. */
            idle: boolean | null;
            /** @description The share of the cache in use, as the kernel counts it. Unit: 1. */
            in_use_ratio: number | null;
            /** @description Warm-ups that are under way or have ended of late. */
            jobs: components["schemas"]["Job"][];
            /** @description A sleep that no knob ends; null if there is none. */
            kernel_sleep: components["schemas"]["KernelSleep"] | null;
            /** @description bcache, dm-cache or dm-writecache. */
            kind: string;
            /** @description All knobs by kernel name. */
            knobs: {
                [key: string]: components["schemas"]["Knob"];
            };
            /** @description Where files lie that the policy names for `promote_hot`; null if it names none. */
            layout: components["schemas"]["Layout"] | null;
            /** @description Records that the probe dropped, by kind. Unit: records. */
            lost: {
                [key: string]: number;
            };
            /** @description What other sizes of the cache would bring; null from an older daemon. */
            miss_ratio: components["schemas"]["MissRatio"] | null;
            /** @description Signals that are unknown, each with the reason. */
            missing: {
                [key: string]: string;
            };
            /** @description observe, advise or enforce. */
            mode: string;
            /** @description Fields that are null because it never happens at this rate. */
            never: string[];
            /** @description What ebbgate does with it, and why, in a sentence. */
            now: string;
            /** @description The part of its schedule that is in force; null if none. */
            overlay: string | null;
            /** @description Overrides in force. */
            overrides: components["schemas"]["ActiveOverride"][];
            /** @description Latency by the path that requests took. */
            paths: components["schemas"]["PathFigures"][];
            /** @description Pinned files. */
            pins: components["schemas"]["Pin"][];
            /**
             * @description The policy in force.
             * @example adaptive
             */
            policy: string;
            /** @description What `promote_hot` does; null where the policy does not use it. */
            promotion: components["schemas"]["Promotion"] | null;
            /** @description What each strategy proposes now, and which one decides. */
            proposals: components["schemas"]["Proposal"][];
            /** @description The load: gap, burst, stream, light or unknown. */
            regime: string;
            /** @description Dirty data that still fits until the kernel stops caching writes. Unit: B. */
            room_bytes: number | null;
            /** @description Bytes by run length, older ones count less. Bucket i: [512 * 2^i, 512 * 2^(i+1)) B. Unit: B. */
            run_bytes: {
                [key: string]: number[];
            };
            /** @description Whether it is outdated: older than 5 s and three ticks, or no daemon runs. */
            stale: boolean;
            /**
             * @description The state that the kernel reports.
             * @example dirty
             */
            state: string | null;
            /** @description Until all dirty data is written back, at this rate; see `never`. Unit: s. */
            time_to_clean_s: number | null;
            /** @description Until the kernel stops caching writes, at this rate; see `never`. Unit: s. */
            time_to_full_s: number | null;
            /**
             * @description Its display name.
             * @example vg/data
             */
            title: string;
            /**
             * @description Its name in paths of this API.
             * @example bcache0
             */
            volume: string;
            /** @description Whether that was learned from gaps; else it is the default. */
            wait_learned: boolean;
            /** @description How long the volume must be idle before a gap is used. Unit: ns. */
            wait_ns: number;
        };
        /** @description A volume as the kernel shows it. */
        VolumeReport: {
            /** @description The slow device. */
            backing: components["schemas"]["DeviceReport"];
            /** @description writeback, writethrough and so on. */
            cache_mode: string | null;
            /** @description The fast ones. */
            caches: components["schemas"]["DeviceReport"][];
            /** @description bcache, dm-cache or dm-writecache. */
            kind: string;
            /** @description All knobs of this kernel. */
            knobs: components["schemas"]["KnobReport"][];
            /** @description observe, advise or enforce; null if unknown. */
            mode: string | null;
            /** @description The state that the kernel reports. */
            state: string | null;
            /** @description Its display name. */
            title: string;
            /** @description The volume. */
            volume: string;
        };
        /** @description All volumes that the daemon follows. */
        Volumes: {
            /** @description Whether the daemon runs; null if unknown. */
            daemon_alive: boolean | null;
            /** @description Why the history cannot be read; null if it can. */
            history: string | null;
            /** @description The time of this answer. Unit: s since 1970. */
            now_unix_s: number;
            /** @description Volumes whose status was written by another version of ebbgate. */
            unreadable: string[];
            /** @description By name. */
            volumes: components["schemas"]["Volume"][];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    advice: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdviceList"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    decisions: {
        parameters: {
            query?: {
                /** @description Only of this volume. */
                volume?: string | null;
                /** @description Only of this knob. */
                knob?: string | null;
                /** @description Only of this strategy. */
                strategy?: string | null;
                /** @description Only of this outcome of a write. */
                outcome?: string | null;
                /** @description From this time on. Unit: s since 1970. */
                since_unix_s?: number | null;
                /** @description Up to this time; without a limit, if left out. Unit: s since 1970. */
                until_unix_s?: number | null;
                /** @description Only those with a smaller number. */
                before_id?: number | null;
                /** @description Largest number of results. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Decisions"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unprocessable */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    decision: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its number. */
                number: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExplainedDecision"];
                };
            };
            /** @description not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unprocessable */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    doctor: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DoctorReport"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    events: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events: `volumes` and `health` (as their routes answer), `decision`, `action`, `intent` (one of each), and `reset` (too much was missed: read everything again). */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": {
                        /** @description JSON on one line. */
                        data: string;
                        /** @enum {unknown} */
                        event: "volumes" | "health" | "decision" | "action" | "intent" | "reset";
                        /** @description To be sent back as Last-Event-ID. */
                        id: string;
                    };
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    intents: {
        parameters: {
            query?: {
                /** @description Largest number of results. */
                limit?: number;
                /** @description Only those with a smaller number. */
                before_id?: number | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IntentList"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unprocessable */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    add: {
        parameters: {
            query?: never;
            header?: {
                /** @description The name of the person, for the record. */
                "X-Ebbgate-Who"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewIntent"];
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Intent"];
                };
            };
            /** @description bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unauthorized */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unprocessable */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    intent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its number. */
                number: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Intent"];
                };
            };
            /** @description not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unprocessable */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    policies: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Policies"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    check: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PolicyText"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyCheck"];
                };
            };
            /** @description bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unprocessable */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    dry_run: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DryRunRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRunResult"];
                };
            };
            /** @description bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unprocessable */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    policy_schema: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The JSON Schema of the policy language. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/schema+json": Record<string, never>;
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    token: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenCheck"];
                };
            };
            /** @description unauthorized */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    volumes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Volumes"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    volume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The name of a volume, as in /api/v1/volumes. */
                volume: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Volume"];
                };
            };
            /** @description not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unprocessable */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    actions: {
        parameters: {
            query?: {
                /** @description From this time on. Unit: s since 1970. */
                since_unix_s?: number | null;
                /** @description Up to this time; now, if left out. Unit: s since 1970. */
                until_unix_s?: number | null;
                /** @description Largest number of results. */
                limit?: number;
                /** @description Only with this outcome; given several times, with any of them. */
                outcome?: components["schemas"]["OutcomeKind"][] | null;
            };
            header?: never;
            path: {
                /** @description The name of a volume, as in /api/v1/volumes. */
                volume: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Actions"];
                };
            };
            /** @description not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unprocessable */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    latency: {
        parameters: {
            query?: {
                /** @description Reads or writes. */
                op?: "read" | "write";
                /** @description From this time on. Unit: s since 1970. */
                since_unix_s?: number | null;
                /** @description Up to this time; now, if left out. Unit: s since 1970. */
                until_unix_s?: number | null;
                /** @description Largest number of points. Unit: points. */
                points?: number;
            };
            header?: never;
            path: {
                /** @description The name of a volume, as in /api/v1/volumes. */
                volume: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Latency"];
                };
            };
            /** @description not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unprocessable */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    samples: {
        parameters: {
            query?: {
                /** @description From this time on. Unit: s since 1970. */
                since_unix_s?: number | null;
                /** @description Up to this time; now, if left out. Unit: s since 1970. */
                until_unix_s?: number | null;
                /** @description Largest number of points. Unit: points. */
                points?: number;
            };
            header?: never;
            path: {
                /** @description The name of a volume, as in /api/v1/volumes. */
                volume: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Samples"];
                };
            };
            /** @description not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unprocessable */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OpenMetrics, or the older text format where only that is accepted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/openmetrics-text": string;
                    "text/plain": string;
                };
            };
            /** @description misdirected request */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
}
