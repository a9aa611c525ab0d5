// SPDX-License-Identifier: GPL-2.0-only
// Printed from openapi.json by `npm run types`; never edited by hand.
export interface paths {
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
        get: operations["get_decisions"];
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
        get: operations["get_decisions_number"];
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
         * @description Server-sent events. A browser that comes back with Last-Event-ID is told what it missed, up to a thousand events. A comment each 15 s says that the line is alive.
         */
        get: operations["get_events"];
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
         * @description Always answered, with what is known: a database that is missing, locked or damaged, and a daemon that is dead, are data.
         */
        get: operations["get_health"];
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
        get: operations["get_token"];
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
        get: operations["get_volumes"];
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
        get: operations["get_volumes_volume"];
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
        get: operations["get_volumes_volume_actions"];
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
         * @description Columns on a regular grid of seconds, minutes or hours; without a time the last hour. Nothing is interpolated: a hole in the history is null in every column.
         */
        get: operations["get_volumes_volume_samples"];
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
            /** @description Where in a text it is wrong; null where that says nothing. */
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
            /** @description The list of wishes: without it nothing can be changed. */
            intents: components["schemas"]["Readable"];
            /** @description The time of this answer. Unit: s since 1970. */
            now_unix_s: number;
            /** @description Of ebbgate-web. */
            version: string;
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
            /** @description As the kernel takes it; null: not known. */
            value: string | null;
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
        /** @description Can a database be used? */
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
            /** @description Fields that are null because it will not happen at this rate. */
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
    get_decisions: {
        parameters: {
            query?: {
                /** @description Only of this volume. */
                volume?: string;
                /** @description Only of this knob. */
                knob?: string;
                /** @description Only of this strategy. */
                strategy?: string;
                /** @description Only of this outcome of a knob write. */
                outcome?: string;
                /** @description From this time on. Unit: s since 1970. */
                since_unix_s?: number;
                /** @description Up to this time; now, if left out. Unit: s since 1970. */
                until_unix_s?: number;
                /** @description Only older ones than this number. */
                before_id?: number;
                /** @description At most so many. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
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
    get_decisions_number: {
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
            /** @description The answer. */
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
    get_events: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description misdirected request */
            421: {
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
    get_health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
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
        };
    };
    get_token: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
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
    get_volumes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
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
        };
    };
    get_volumes_volume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The name of a volume, as /api/v1/volumes has it. */
                volume: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
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
    get_volumes_volume_actions: {
        parameters: {
            query?: {
                /** @description From this time on. Unit: s since 1970. */
                since_unix_s?: number;
                /** @description Up to this time; now, if left out. Unit: s since 1970. */
                until_unix_s?: number;
                /** @description At most so many. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The name of a volume, as /api/v1/volumes has it. */
                volume: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
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
    get_volumes_volume_samples: {
        parameters: {
            query?: {
                /** @description From this time on. Unit: s since 1970. */
                since_unix_s?: number;
                /** @description Up to this time; now, if left out. Unit: s since 1970. */
                until_unix_s?: number;
                /** @description At most so many points. Unit: points. */
                points?: number;
            };
            header?: never;
            path: {
                /** @description The name of a volume, as /api/v1/volumes has it. */
                volume: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
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
}
