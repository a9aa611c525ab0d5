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
         * @description What `ebbgate doctor` says, as far as a process without rights can know it; what it could
         *     not look at is in `unknown`.
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
         * @description The newest first, of all that is kept; `before_id` turns the page.
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
         * @description All that was compared for it, also by those that did not win.
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
         * What works here
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
         * @description Server-sent events. A browser that comes back with Last-Event-ID is told what it missed,
         *     up to a thousand events. A comment each 15 s says that the line is alive.
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
         * What works and what does not
         * @description Always answered, with what is known: a database that is missing, locked or damaged, and
         *     a daemon that is dead, are data.
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
         * @description What people asked for, the newest first, and the outcomes.
         */
        get: operations["intents"];
        put?: never;
        /**
         * Ask for something
         * @description Answered once the daemon has accepted or refused the request. It is carried out within a
         *     second or two: follow it by its number, or by the event stream.
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
         * @description What was asked for, and its outcome.
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
         * @description The administrator's files, the shipped ones, and what runs for each volume.
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
         * Is a policy right?
         * @description A text as if it were a file of the folder. Changes nothing, and so needs no token.
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
         * What a policy would have decided
         * @description On what the history has of the last hours, beside another policy. Changes nothing, and so
         *     needs no token; one at a time.
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
         * @description For editors: every key with its type, its range and what it is for.
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
         * Is the token right?
         * @description Answered with a right token only.
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
         * Every volume as it is now
         * @description Every volume that the daemon follows; none, and why, where nothing can be read.
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
         * @description Knob writes of a volume, the newest first; without a time those of the last day.
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
         * @description How long requests took, as a heat map; without a time the last hour.
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
         * The course of a volume
         * @description Columns on a regular grid of seconds, minutes or hours; without a time the last hour.
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
         * @description All volumes as they are now. Where the history cannot be read the scrape fails, so that
         *     Prometheus knows of it.
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
        /** @description One knob write, and what became of it. */
        Action: {
            /** @description When. Unit: s since 1970. */
            at_unix_s: number;
            /** @description The decision behind it, as long as it is kept. */
            decision_id: number | null;
            /** @description What went wrong; empty where nothing did. */
            error: string;
            /** @description Its number. */
            id: number;
            /** @description Did a strategy move the gate with it? That happens many times a minute, so one write is not undone: to stop it, set the mode to advise. */
            is_gate: boolean;
            /**
             * @description The knob by its kernel name.
             * @example writeback_percent
             */
            knob: string;
            /** @description From the edge that caused it to the write. Unit: s. */
            latency_s: number | null;
            /** @description The value that was wanted. */
            new: string;
            /** @description Its value before, as the kernel takes it. */
            old: string | null;
            /** @description changed, unchanged, refused, manual, too_soon, failed, advised. */
            outcome: string;
            /** @description What the kernel showed afterwards. */
            read_back: string | null;
            /** @description Why, in a sentence. */
            reason: string;
            /** @description Who wanted it. */
            strategy: string;
            /** @description The volume. */
            volume: string;
        };
        /** @description Knob writes, the newest first. */
        Actions: {
            /** @description The newest first. */
            actions: components["schemas"]["Action"][];
        };
        /** @description All advice that holds now, and what was applied. */
        AdviceList: {
            /** @description Volume by volume. */
            advice: components["schemas"]["AdviceRow"][];
            /** @description What is in force, the newest first. */
            applied: components["schemas"]["AppliedAdvice"][];
            /** @description What could not be looked at. */
            unknown: components["schemas"]["Unknown"][];
        };
        /** @description One thing to do or to know. */
        AdviceRow: {
            /** @description The volume or device that it is about. */
            about: string;
            /** @description Would the daemon carry it out as the volume is now? */
            can_apply: boolean;
            /** @description The command that does it by hand. */
            command: string | null;
            /** @description What to expect of it. */
            effect: string | null;
            /** @description What was measured here. */
            evidence: string[];
            /**
             * @description A number that always means the same.
             * @example EBB-206
             */
            id: string;
            /** @description The line that makes it last, for the file in `lasts`. */
            keep: string | null;
            /** @description What of it survives a reboot; null: nothing is to be done. */
            lasts: string | null;
            /** @description The weight in words: Problem, Recommended or Info. */
            severity: string;
            /** @description What to do and why. */
            text: string;
            /** @description What people call the volume. */
            title: string;
            /** @description The command that takes it back once it is done. */
            undo: string | null;
            /** @description The volume. */
            volume: string;
            /** @description fault: data or tuning is at risk; advice: measured here, or harmful whatever the load is; note: to know. */
            weight: string;
            /** @description Why it would not. */
            why_not: string | null;
        };
        /**
         * @description An advice that was applied and is in force. A request `release` for each of its knobs undoes
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
            /** @description What it set and what is still in force. */
            knobs: components["schemas"]["AppliedKnob"][];
            /** @description What people call the volume. */
            title: string;
            /** @description The volume. */
            volume: string;
            /** @description Who applied it. */
            who: string;
        };
        /** @description A knob that an advice has set. */
        AppliedKnob: {
            /**
             * @description The knob by its kernel name.
             * @example sequential_cutoff
             */
            knob: string;
            /** @description Its value as the kernel takes it. */
            value: string;
        };
        /** @description Is a policy right? */
        Checked: {
            /** @description What is not. */
            errors: components["schemas"]["PolicyProblem"][];
            /** @description Is it? */
            ok: boolean;
        };
        /** @description A cleaning that a person asked for, under way. */
        CleaningState: {
            /** @description Dirty data at its begin. Unit: B. */
            began_with_bytes: number | null;
            /** @description How long it will take still; null: no pace yet. Unit: s. */
            eta_s: number | null;
            /** @description Its begin. CLOCK_MONOTONIC of that machine; comparable within one boot only. Unit: ns. */
            since_ns: number;
            /** @description When it is given up. CLOCK_MONOTONIC of that machine; comparable within one boot only. Unit: ns. */
            until_ns: number;
            /** @description Who asked for it. */
            who: string;
        };
        /** @description One value for each time of the grid. Null where nothing was recorded or it is unknown. */
        Columns: {
            /** @description In flight at the backing device. Unit: requests. */
            backing_depth_ios: (number | null)[];
            /** @description Past the cache in the time of a point. Unit: B. */
            bypass_bytes: (number | null)[];
            /** @description The size of the cache. Unit: B. */
            cache_bytes: (number | null)[];
            /** @description Written back to the disk. Unit: B/s. */
            destage_bytes_per_s: (number | null)[];
            /** @description Dirty data. Unit: B. */
            dirty_bytes: (number | null)[];
            /** @description That became dirty. Unit: B/s. */
            dirty_in_bytes_per_s: (number | null)[];
            /** @description Reads that were served from the cache. Unit: 1. */
            hit_ratio: (number | null)[];
            /** @description The share of the time without load. Unit: 1. */
            idle: (number | null)[];
            /** @description The share of the cache in use. Unit: 1. */
            in_use_ratio: (number | null)[];
            /** @description Bytes of these. Unit: B/s. */
            read_bytes_per_s: (number | null)[];
            /** @description Read requests of users. Unit: requests/s. */
            read_iops: (number | null)[];
            /** @description Until all is written back; null: also never. Unit: s. */
            time_to_clean_s: (number | null)[];
            /** @description Until the kernel stops caching writes; null: also never. Unit: s. */
            time_to_full_s: (number | null)[];
            /** @description Bytes of these. Unit: B/s. */
            write_bytes_per_s: (number | null)[];
            /** @description Write requests of users. Unit: requests/s. */
            write_iops: (number | null)[];
        };
        /** @description One comparison: the measured value beside the threshold. */
        Condition: {
            /** @description `>=` or `<`. */
            comparison: string;
            /** @description Did the condition hold? */
            holds: boolean;
            /** @description With its unit; null: unknown, then it never holds. */
            measured: string | null;
            /**
             * @description What was measured.
             * @example dirty data
             */
            signal: string;
            /** @description With its unit. */
            threshold: string;
        };
        /** @description What the probe costs, where the kernel counts it. */
        CostReport: {
            /** @description Does the kernel count now? */
            counting: boolean;
            /** @description What counting itself costs. Unit: ns. */
            empty_run_ns: number;
            /** @description Of one run; null: not known. Unit: ns. */
            ns_per_run: number | null;
            /** @description The probe's process. */
            pid: number | null;
            /** @description Each by itself. */
            programs: components["schemas"]["ProgramCost"][];
            /** @description Of all programs. Unit: runs. */
            runs: number;
            /** @description Why nothing is known; empty where something is. */
            why: string;
            /** @description The time that was counted. Unit: ns. */
            window_ns: number | null;
        };
        /** @description The daemon, as far as it is known. */
        DaemonHealth: {
            /** @description How long ago that is. Unit: s. */
            age_s: number | null;
            /** @description Does it run? Null: cannot be told. */
            alive: boolean | null;
            /** @description When it last said something. Unit: s since 1970. */
            at_unix_s: number | null;
            /** @description What does not work, each in a sentence. */
            errors: string[];
            /** @description Its process. */
            pid: number | null;
            /** @description The administrator's policies. */
            policies: components["schemas"]["PolicyTold"] | null;
            /** @description Its probe. */
            probe: components["schemas"]["ProbeTold"] | null;
            /** @description When it was started. Unit: s since 1970. */
            started_unix_s: number | null;
            /** @description How often it looks. Unit: s. */
            tick_s: number | null;
            /** @description Its version. */
            version: string | null;
        };
        /** @description What a decision wants of the gate. */
        DecidedGate: {
            /** @description Instead of a rate on dm-cache; 0 elsewhere. Unit: requests. */
            depth_ios: number;
            /** @description released, closed, paced, pulsed or open. */
            kind: string;
            /** @description How long a pulse lasts; 0 elsewhere. Unit: ns. */
            pulse_ns: number;
            /** @description Where it is paced or pulsed; 0 elsewhere. Unit: B/s. */
            rate_bytes_per_s: number;
        };
        /** @description What was decided, without its explanation. */
        Decision: {
            /** @description Was a knob written for it? */
            acted: boolean;
            /** @description The knob writes for it, the oldest first. */
            actions: components["schemas"]["Action"][];
            /** @description When. Unit: s since 1970. */
            at_unix_s: number;
            /** @description Who decided on that; empty: nobody. */
            cutoff_strategy: string;
            /** @description What it wants of the gate; null: nothing. */
            gate: components["schemas"]["DecidedGate"] | null;
            /** @description Who decided on the gate; empty: nobody. */
            gate_strategy: string;
            /** @description Its number. */
            id: number;
            /** @description The reasons of those that won, in a sentence. */
            reason: string;
            /** @description From so long a run on streams bypass; null: nobody wants it. Unit: B. */
            sequential_cutoff_bytes: number | null;
            /** @description The volume. */
            volume: string;
        };
        /** @description Decisions, the newest first. */
        Decisions: {
            /** @description The newest first. */
            decisions: components["schemas"]["Decision"][];
            /** @description `before_id` of the next page; null: no more. */
            next_before_id: number | null;
        };
        /** @description A block device under a volume. */
        DeviceReport: {
            /**
             * @description Its numbers.
             * @example 254:0
             */
            devno: string;
            /** @description Its name. */
            name: string;
            /** @description The length of its queue. Unit: requests. */
            nr_requests: number | null;
            /** @description How many it takes at once. Unit: requests. */
            queue_depth: number | null;
            /** @description Does it turn? */
            rotational: boolean | null;
            /** @description Its I/O scheduler. */
            scheduler: string | null;
            /** @description Those that it could have. */
            schedulers: string[];
            /** @description Its size. Unit: B. */
            size_bytes: number;
        };
        /** @description The probe, as the daemon says. */
        DoctorProbe: {
            /** @description Which; null: nobody says. */
            kind: string | null;
            /** @description What it does; null: nobody says. */
            state: string | null;
            /** @description Why nobody does. */
            why: string | null;
        };
        /** @description What works here, and what does not. */
        DoctorReport: {
            /** @description What the probe costs. */
            cost: components["schemas"]["CostReport"];
            /** @description The kernel of this machine. */
            kernel: components["schemas"]["Kernel"];
            /** @description What is missing, each in a sentence. */
            missing: string[];
            /** @description The probe. */
            probe: components["schemas"]["DoctorProbe"];
            /** @description Each signal: ok, or what is missing. */
            signals: {
                [key: string]: string;
            };
            /** @description What it may not look at. */
            unknown: components["schemas"]["Unknown"][];
            /** @description All that this process may look at. */
            volumes: components["schemas"]["VolumeReport"][];
        };
        /** @description For so long the two wanted different things. */
        DryRunDifference: {
            /** @description What this one would have wanted. */
            after: string;
            /** @description From. Unit: s since 1970. */
            at_unix_s: number;
            /** @description What the other policy wanted. */
            before: string;
            /** @description Of what: destage, streams and so on. */
            setting: string;
            /** @description Until. Unit: s since 1970. */
            until_unix_s: number;
            /** @description The reason of this one. */
            why_after: string;
            /** @description Its reason. */
            why_before: string;
        };
        /** @description A policy to run on what the history has of a volume. */
        DryRunOf: {
            /** @description The policy to compare with, by name; null: the current one. */
            against?: string | null;
            /**
             * @description How far back. Unit: h.
             * @default 24
             */
            hours: number;
            /** @description What the policy says. */
            text: string;
            /**
             * @description Which volume.
             * @example bcache0
             */
            volume: string;
        };
        /** @description What a policy would have decided otherwise. */
        DryRunResult: {
            /** @description The share of the time with any. Unit: 1. */
            coverage_ratio: number;
            /** @description For how long which gate was wanted. */
            destage_s: components["schemas"]["DryRunSpent"];
            /** @description In the order of time, at most a thousand. */
            differences: components["schemas"]["DryRunDifference"][];
            /** @description Samples that were looked at. Unit: samples. */
            frames: number;
            /** @description The begin of the time. Unit: s since 1970. */
            from_unix_s: number;
            /** @description Shorter differences that are not listed. Unit: differences. */
            left_out: number;
            /** @description What the history cannot tell, each in a sentence. */
            notes: string[];
            /** @description Its end. Unit: s since 1970. */
            until_unix_s: number;
        };
        /** @description For how long each wanted which gate. */
        DryRunSpent: {
            /** @description This one, by what it wanted. Unit: s. */
            after: {
                [key: string]: number;
            };
            /** @description The other policy, by what it wanted. Unit: s. */
            before: {
                [key: string]: number;
            };
        };
        /** @description What runs for a volume now. */
        EffectivePolicy: {
            /** @description Its file, of an administrator's; null: shipped. */
            file: string | null;
            /** @description The part of its schedule that is in force. */
            overlay: string | null;
            /** @description The policy by its name. */
            policy: string;
            /** @description What people call it. */
            title: string;
            /** @description The volume. */
            volume: string;
        };
        /** @description Every answer with a status from 400 on has this shape. */
        Error: {
            /** @description The error. */
            error: components["schemas"]["ErrorBody"];
        };
        /** @description What went wrong and what to do next. */
        ErrorBody: {
            /**
             * @description A word that stays the same, for programs.
             * @example not_found
             */
            code: string;
            /** @description The next step; null where there is none. */
            hint: string | null;
            /** @description What is wrong, in a sentence. */
            message: string;
            /** @description Where in a text it is wrong; null where unknown. */
            place: components["schemas"]["Place"] | null;
        };
        /** @description A decision with all that was compared for it. */
        ExplainedDecision: {
            /** @description Was a knob written for it? */
            acted: boolean;
            /** @description The knob writes for it, the oldest first. */
            actions: components["schemas"]["Action"][];
            /** @description When. Unit: s since 1970. */
            at_unix_s: number;
            /** @description Who decided on that; empty: nobody. */
            cutoff_strategy: string;
            /** @description What it wants of the gate; null: nothing. */
            gate: components["schemas"]["DecidedGate"] | null;
            /** @description Who decided on the gate; empty: nobody. */
            gate_strategy: string;
            /** @description Its number. */
            id: number;
            /** @description Every strategy, also those that did not win. */
            proposals: components["schemas"]["Proposal"][];
            /** @description The reasons of those that won, in a sentence. */
            reason: string;
            /** @description From so long a run on streams bypass; null: nobody wants it. Unit: B. */
            sequential_cutoff_bytes: number | null;
            /** @description The volume. */
            volume: string;
        };
        /** @description How destage is let through now. */
        Gate: {
            /** @description Instead of a rate on dm-cache; 0 elsewhere. Unit: requests. */
            depth_ios: number;
            /** @description released (the kernel decides), closed, paced, pulsed or open. */
            kind: string;
            /** @description Where it is paced or pulsed; 0 elsewhere. Unit: B/s. */
            rate_bytes_per_s: number;
            /** @description Why, in a sentence. */
            reason: string;
            /** @description Since when it is so. CLOCK_MONOTONIC of that machine; comparable within one boot only. Unit: ns. */
            since_ns: number;
            /** @description unknown, normal, wait, destage or pressure. */
            state: string;
        };
        /** @description What works and what does not. Always answered. */
        Health: {
            /** @description The daemon. */
            daemon: components["schemas"]["DaemonHealth"];
            /** @description The history, from which all figures come. */
            history: components["schemas"]["Readable"];
            /** @description Requests to the daemon: can they be made? */
            intents: components["schemas"]["Readable"];
            /** @description The time of this answer. Unit: s since 1970. */
            now_unix_s: number;
            /** @description Of ebbgate-web. */
            version: string;
        };
        /** @description A request of a person, and its outcome. */
        Intent: {
            /** @description The arguments of its kind; long texts are shortened. */
            args: {
                [key: string]: unknown;
            };
            /** @description When. Unit: s since 1970. */
            at_unix_s: number;
            /** @description Its number. */
            id: number;
            /**
             * @description What was asked for.
             * @example mode
             */
            kind: string;
            /** @description Was it carried out? Null: no outcome yet. */
            ok: boolean | null;
            /** @description The outcome in a sentence; null: none yet. */
            outcome: string | null;
            /** @description When it got its outcome. Unit: s since 1970. */
            resolved_unix_s: number | null;
            /** @description For which volume; null: for all, or for none. */
            volume: string | null;
            /** @description Who asked: a user of the machine, and who sits before the page. */
            who: string;
        };
        /**
         * @description What a person may ask for.
         * @enum {string}
         */
        IntentKind: "mode" | "hold" | "restore" | "clean" | "set" | "drain" | "release" | "apply" | "undo" | "policy_save" | "policy_remove";
        /** @description Requests, the newest first. */
        IntentList: {
            /** @description The newest first. */
            intents: components["schemas"]["Intent"][];
        };
        /** @description The running kernel. */
        Kernel: {
            /** @description Does it describe its types? Without that no probe can run. */
            btf: boolean;
            /** @description Its version. */
            release: string;
        };
        /** @description A sleep of the kernel's writeback thread that no knob ends. */
        KernelSleep: {
            /** @description How long it may last still, at most. Unit: s. */
            left_s: number;
            /** @description What that means, in a sentence. */
            text: string;
        };
        /** @description A setting of the kernel. */
        Knob: {
            /** @description What it was before ebbgate; null: ebbgate holds it not. */
            original: string | null;
            /** @description kernel, ebbgate, or manual: somebody else has written it since. */
            owner: string;
            /** @description May a person set it through ebbgate, within its bounds? */
            settable: boolean;
            /** @description As the kernel takes it; null: not known. */
            value: string | null;
        };
        /** @description A knob, and whether ebbgate may touch it. */
        KnobReport: {
            /** @description What it does. */
            about: string;
            /** @description Its kernel name. */
            name: string;
            /** @description What it was before ebbgate. */
            original: string | null;
            /** @description kernel, ebbgate or manual. */
            owner: string;
            /** @description Its file. */
            path: string;
            /** @description tuned (in enforce), shown, or manual. */
            touch: string;
            /** @description As the kernel takes it. */
            value: string | null;
        };
        /** @description Requests of users by time and by how long they took. */
        Latency: {
            /** @description The begin of each point. Unit: s since 1970. */
            at_unix_s: number[];
            /** @description For each point the requests of each bucket. Null: nothing known. Unit: requests. */
            counts: (number[] | null)[];
            /** @description The upper edges of the buckets, ascending; the last one has what took longer, too. Unit: s. */
            edges_s: number[];
            /** @description read or write. */
            op: string;
            /** @description The time of a point. Unit: s. */
            span_s: number;
            /** @description The volume. */
            volume: string;
        };
        /** @description A request to the daemon, which carries it out within a second or two. */
        NewIntent: {
            /**
             * @description The arguments, by kind. mode (How far ebbgate may go with the volume, from now on.): mode: observe, advise or enforce. hold (Freeze every knob where it is, or go on.): on?: false: go on; true where it is left out; for_ns?: for so long, ns; without it until released. restore (Put every original back; the mode is advise then.): nothing. clean (Have dm-cache's cleaner write all dirty data back.): within_ns: given up after so long, ns. set (A knob keeps a value, which no strategy changes meanwhile.): knob: a knob by the kernel's name; value: with a unit, or as the kernel takes it; for_ns?: for so long, ns; without it until released. drain (Open the gate so far that all is clean in time.): for_ns: clean within so long, ns. release (Give a knob back to the strategies; without one: every knob, and end holds and drains.): knob?: a knob by the kernel's name. apply (Set the knobs that an advice names, all or none of them, until they are released.): id: the advice, such as EBB-206; it must hold now. undo (Put back what a knob was before one recorded write of it, until it is released.): action_id: the number of the knob write in the history. policy_save (Keep a policy and follow it at once; what it replaces stays in NAME.yaml~.): name: of the file, without .yaml; text: of the policy; the whole request at most 64 KiB. policy_remove (Take a policy away; what it said stays in NAME.yaml~.): name: of the file, without .yaml.
             * @default {}
             * @example {
             *       "mode": "enforce"
             *     }
             */
            args: {
                [key: string]: unknown;
            };
            /**
             * @description What is asked for.
             * @example mode
             */
            kind: components["schemas"]["IntentKind"];
            /** @description For which volume; null: for all, where that makes sense. */
            volume?: string | null;
        };
        /** @description One path (`read hit`) on the same grid. */
        PathColumns: {
            /** @description Bytes of these. Unit: B. */
            bytes: (number | null)[];
            /** @description Requests in the time of a point. Unit: requests. */
            ios: (number | null)[];
            /** @description Half of them took no longer. Unit: s. */
            p50_s: (number | null)[];
            /** @description 99 of 100 took no longer. Unit: s. */
            p99_s: (number | null)[];
        };
        /** @description Requests of users that took one path, over the last second. */
        PathFigures: {
            /** @description Bytes of these. Unit: B. */
            bytes: number;
            /** @description Requests. Unit: requests. */
            ios: number;
            /** @description read or write. */
            op: string;
            /** @description Half of them took no longer; null without any. Unit: ns. */
            p50_ns: number | null;
            /** @description 99 of 100 took no longer; null without any. Unit: ns. */
            p99_ns: number | null;
            /** @description hit, miss, bypass, writeback or writethrough. */
            path: string;
        };
        /** @description Where in a text something is wrong. */
        Place: {
            /** @description From 1. Unit: column. */
            column: number;
            /** @description The name of the file, or of the part of the request. */
            file: string;
            /** @description From 1. Unit: line. */
            line: number;
        };
        /** @description All policies of the machine. */
        Policies: {
            /** @description What the daemon said that it runs. */
            effective: components["schemas"]["EffectivePolicy"][];
            /** @description The administrator's, in order of precedence. */
            files: components["schemas"]["PolicyFile"][];
            /** @description Where the administrator's are. */
            folder: string;
            /** @description Why the folder cannot be read; null where it can. */
            folder_why: string | null;
            /** @description Those that come with ebbgate. */
            shipped: components["schemas"]["ShippedPolicy"][];
        };
        /** @description A file of the administrator. */
        PolicyFile: {
            /** @description What is not. */
            errors: components["schemas"]["PolicyProblem"][];
            /** @description Without its ending; by it `policy_save` and `policy_remove` go. */
            name: string;
            /** @description Is it right, with the others beside it? */
            ok: boolean;
            /** @description The whole path. */
            path: string;
            /** @description What it says; null: it cannot be read. */
            text: string | null;
        };
        /** @description One thing that is wrong with a policy, and where. */
        PolicyProblem: {
            /** @description From 1. Unit: column. */
            column: number;
            /** @description What would be right. */
            expected: string | null;
            /** @description In which file. */
            file: string;
            /** @description From 1. Unit: line. */
            line: number;
            /** @description What is wrong. */
            message: string;
            /** @description The nearest word that is known. */
            nearest: string | null;
        };
        /** @description A policy to check as if it were a file of the folder. */
        PolicyText: {
            /**
             * @description File name without extension.
             * @example night
             */
            name: string;
            /** @description What it says. */
            text: string;
        };
        /** @description What the daemon says of the administrator's policy files. */
        PolicyTold: {
            /** @description Where they are. */
            folder: string;
            /** @description Are the last good ones in force? */
            kept: boolean;
            /** @description The good ones, in the order in which they count. */
            names: string[];
            /** @description Each error with its place. */
            problems: string[];
        };
        /** @description What the daemon says of its probe. */
        ProbeTold: {
            /** @description Lines that were no record. Unit: lines. */
            bad_lines: number;
            /** @description What it lost or refused, by what. */
            complaints: {
                [key: string]: string;
            };
            /**
             * @description Which probe.
             * @example ebpf
             */
            kind: string;
            /** @description How often it had to be started again. Unit: restarts. */
            restarts: number;
            /** @description Each signal: ok, or what is missing. */
            signals: {
                [key: string]: string;
            };
            /**
             * @description What it does.
             * @example running
             */
            state: string;
        };
        /** @description One BPF program of the probe. */
        ProgramCost: {
            /** @description The kernel's number of it. */
            id: number;
            /** @description Its name. */
            name: string;
            /** @description Of one run; null: it did not run. Unit: ns. */
            ns_per_run: number | null;
            /** @description How long that took. Unit: ns. */
            run_ns: number;
            /** @description How often it ran. Unit: runs. */
            runs: number;
        };
        /** @description What one strategy, rule or wish wants, and why. */
        Proposal: {
            /** @description Every comparison that it made. */
            conditions: components["schemas"]["Condition"][];
            /** @description Why, in a sentence. */
            reason: string;
            /**
             * @description Its name.
             * @example idle_destage
             */
            strategy: string;
            /** @description Why it can do nothing here; empty where it can. */
            unsupported: string;
            /** @description The settings in which it decided. */
            wins: string[];
        };
        /** @description One direction of the load of users. */
        Rates: {
            /** @description Bytes of these. Unit: B/s. */
            bytes_per_s: number;
            /** @description Requests that arrived. Unit: requests/s. */
            iops: number;
        };
        /** @description Can the history be read, or the daemon be asked? */
        Readable: {
            /** @description Can it? */
            ok: boolean;
            /** @description Why not; null where it can. */
            why: string | null;
        };
        /** @description The course of a volume on a regular grid. */
        Samples: {
            /** @description The begin of each point. Unit: s since 1970. */
            at_unix_s: number[];
            /** @description Each as long as `at_unix_s`. Null where nothing was recorded. */
            columns: components["schemas"]["Columns"];
            /** @description The mode of each point, or hold. Null where nothing was recorded. */
            mode: (string | null)[];
            /** @description By path, such as `read hit`. */
            paths: {
                [key: string]: components["schemas"]["PathColumns"];
            };
            /** @description The first point. Unit: s since 1970. */
            since_unix_s: number;
            /** @description The time of a point: 1, 60 or 3600. Unit: s. */
            span_s: number;
            /** @description The end of the last point. Unit: s since 1970. */
            until_unix_s: number;
            /** @description The volume. */
            volume: string;
        };
        /** @description A policy that comes with ebbgate. */
        ShippedPolicy: {
            /** @description Its name. */
            name: string;
            /** @description What it says. */
            text: string;
            /** @description What it is for, in a sentence. */
            why: string;
        };
        /** @description What a person wished that lasts: a hold, a knob's value, a drain. */
        StandingWish: {
            /** @description hold, set or drain. */
            kind: string;
            /** @description Which knob, of `set`. */
            knob: string | null;
            /** @description How long still; null: until released. Unit: ns. */
            left_ns: number | null;
            /** @description Since when. Unit: ns since 1970. */
            since_unix_ns: number;
            /** @description Until when; null: until released. Unit: ns since 1970. */
            until_unix_ns: number | null;
            /** @description Its value as the kernel takes it, of `set`. */
            value: string | null;
            /** @description Who wished it. */
            who: string;
        };
        /** @description The token is right. */
        TokenRight: {
            /** @description Always true; a wrong token is an error. */
            ok: boolean;
        };
        /** @description What could not be looked at, and why. */
        Unknown: {
            /** @description What people call the volume. */
            title: string | null;
            /** @description The volume; null: not known either. */
            volume: string | null;
            /** @description The reason, and the next step. */
            why: string;
        };
        /** @description A volume as the daemon last saw it. What is unknown is null, never zero. */
        Volume: {
            /** @description How long ago that is. Unit: s. */
            age_s: number;
            /** @description The time of its figures. CLOCK_MONOTONIC of that machine; comparable within one boot only. Unit: ns. */
            at_ns: number;
            /** @description When the daemon said all this. Unit: s since 1970. */
            at_unix_s: number;
            /** @description In flight at the backing device. Unit: requests. */
            backing_depth_ios: number | null;
            /** @description Bytes past the cache in the last second, by reason. Unit: B. */
            bypass_bytes: {
                [key: string]: number;
            };
            /** @description The size of the cache. Unit: B. */
            cache_bytes: number | null;
            /** @description writeback, writethrough and so on. */
            cache_mode: string | null;
            /** @description A cleaning under way. */
            cleaning: components["schemas"]["CleaningState"] | null;
            /** @description At so much dirty data the kernel stops caching writes. Unit: B. */
            cutoff_dirty_bytes: number | null;
            /** @description Written back to the disk. Unit: B/s. */
            destage_bytes_per_s: number | null;
            /** @description Data in the cache, newer than the disk. Unit: B. */
            dirty_bytes: number | null;
            /** @description With less dirty data no gap is used for destage. Unit: B. */
            dirty_floor_bytes: number | null;
            /** @description The same as a share of the cache. Unit: 1. */
            dirty_ratio: number | null;
            /** @description The load of users by read and write. */
            foreground: {
                [key: string]: components["schemas"]["Rates"];
            } | null;
            /** @description Idle gaps that faded with time, by length: [2^i, 2^(i+1)) microseconds. Unit: gaps. */
            gap_counts: number[];
            /** @description How destage is let through. */
            gate: components["schemas"]["Gate"];
            /** @description Is every knob frozen where it is? */
            held: boolean;
            /** @description The share of read requests of the last five minutes that found all their data in the cache. Partial hits count as misses, reads past the cache as reads. Null: no reads. Unit: 1. */
            hit_ratio: number | null;
            /** @description The time that `hit_ratio` covers. Unit: s. */
            hit_ratio_window_s: number;
            /** @description Is the load away? */
            idle: boolean | null;
            /** @description The share of the cache in use, which the kernel compares. Unit: 1. */
            in_use_ratio: number | null;
            /** @description A sleep that no knob ends; null: none. */
            kernel_sleep: components["schemas"]["KernelSleep"] | null;
            /** @description bcache, dm-cache or dm-writecache. */
            kind: string;
            /** @description Every knob by its kernel name. */
            knobs: {
                [key: string]: components["schemas"]["Knob"];
            };
            /** @description What the probe had to drop, by what. Unit: records. */
            lost: {
                [key: string]: number;
            };
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
            /** @description The part of its schedule that is in force. */
            overlay: string | null;
            /** @description Latency by the path that requests took. */
            paths: components["schemas"]["PathFigures"][];
            /**
             * @description The policy that runs.
             * @example adaptive
             */
            policy: string;
            /** @description What each strategy wants now, and who won. */
            proposals: components["schemas"]["Proposal"][];
            /** @description The load: gap, burst, stream, light or unknown. */
            regime: string;
            /** @description What the kernel will take as dirty before it stops caching writes. Unit: B. */
            room_bytes: number | null;
            /** @description Bytes that faded, of runs of [512 * 2^i, 512 * 2^(i+1)) B, by read and write. Unit: B. */
            run_bytes: {
                [key: string]: number[];
            };
            /** @description Is it too old to be called now (more than 5 s, or no daemon)? */
            stale: boolean;
            /**
             * @description The kernel's own word on the volume.
             * @example dirty
             */
            state: string | null;
            /** @description Until all is written back, at this rate; see `never`. Unit: s. */
            time_to_clean_s: number | null;
            /** @description Until it stops caching writes, at this rate; see `never`. Unit: s. */
            time_to_full_s: number | null;
            /**
             * @description What people call it.
             * @example vg/data
             */
            title: string;
            /**
             * @description The name by which to ask for it.
             * @example bcache0
             */
            volume: string;
            /** @description Was that learned from gaps, or is it the default? */
            wait_learned: boolean;
            /** @description So long it must be quiet before a gap is used. Unit: ns. */
            wait_ns: number;
            /** @description Wishes of people that are in force. */
            wishes: components["schemas"]["StandingWish"][];
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
            /** @description Every knob of this kernel. */
            knobs: components["schemas"]["KnobReport"][];
            /** @description How far ebbgate goes with it; null: nobody says. */
            mode: string | null;
            /** @description The kernel's own word. */
            state: string | null;
            /** @description What people call it. */
            title: string;
            /** @description The volume. */
            volume: string;
        };
        /** @description Every volume that the daemon follows. */
        Volumes: {
            /** @description Does the daemon run? Null: cannot be told. */
            daemon_alive: boolean | null;
            /** @description Why nothing can be read; null where it can. */
            history: string | null;
            /** @description The time of this answer. Unit: s since 1970. */
            now_unix_s: number;
            /** @description Volumes whose document is of another version. */
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
                /** @description Only of this outcome of a knob write. */
                outcome?: string | null;
                /** @description From this time on. Unit: s since 1970. */
                since_unix_s?: number | null;
                /** @description Up to this time; now, if left out. Unit: s since 1970. */
                until_unix_s?: number | null;
                /** @description Only older ones than this number. */
                before_id?: number | null;
                /** @description At most so many. */
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
                /** @description At most so many. */
                limit?: number;
                /** @description Only older ones than this number. */
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
                /** @description Who sits before the page, for the record. */
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
                    "application/json": components["schemas"]["Checked"];
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
                "application/json": components["schemas"]["DryRunOf"];
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
                    "application/json": components["schemas"]["TokenRight"];
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
                /** @description At most so many. */
                limit?: number;
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
                /** @description Of reads, or of writes. */
                op?: "read" | "write";
                /** @description From this time on. Unit: s since 1970. */
                since_unix_s?: number | null;
                /** @description Up to this time; now, if left out. Unit: s since 1970. */
                until_unix_s?: number | null;
                /** @description At most so many points. Unit: points. */
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
                /** @description At most so many points. Unit: points. */
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
