-- SPDX-License-Identifier: GPL-2.0-only
-- A file as an ebbgate with the third schema wrote it, with a little of everything.
BEGIN TRANSACTION;
CREATE TABLE actions (
        id INTEGER PRIMARY KEY,
        decision_id INTEGER REFERENCES decisions (id) ON DELETE SET NULL,
        volume TEXT NOT NULL,
        at_unix_ns INTEGER NOT NULL,
        at_ns INTEGER NOT NULL,
        knob TEXT NOT NULL,
        old TEXT,
        new TEXT NOT NULL,
        strategy TEXT NOT NULL,
        reason TEXT NOT NULL,
        outcome TEXT NOT NULL,
        read_back TEXT,
        error TEXT NOT NULL,
        latency_ns INTEGER
    );
INSERT INTO "actions" VALUES(1,1,'bcache0',1760000042100000000,7,'writeback_percent','10','40','idle_destage','idle 410 ms >= wait 300 ms','changed',NULL,'',4000000);
CREATE TABLE decisions (
        id INTEGER PRIMARY KEY,
        volume TEXT NOT NULL,
        at_unix_ns INTEGER NOT NULL,
        at_ns INTEGER NOT NULL,
        gate TEXT,
        gate_strategy TEXT NOT NULL,
        sequential_cutoff_bytes INTEGER,
        cutoff_strategy TEXT NOT NULL,
        document TEXT NOT NULL
    , acted INTEGER NOT NULL DEFAULT 0, stands TEXT NOT NULL DEFAULT '{}');
INSERT INTO "decisions" VALUES(1,'bcache0',1760000042000000000,1000000000,NULL,'idle_destage',NULL,'','{"at_ns":1000000000,"collect_garbage":false,"congestion_bypass":null,"cutoff_strategy":"","gate":null,"gate_strategy":"idle_destage","proposals":[{"collect_garbage":false,"conditions":[{"comparison":">=","holds":true,"measured":"410 ms","signal":"idle","threshold":"300 ms"}],"congestion_bypass":null,"gate":null,"knobs":[],"reason":"destage: idle 410 ms >= wait 300 ms","sequential_cutoff_bytes":null,"split_requests":false,"strategy":"idle_destage","takes_back":[],"unsupported":"","wins":[]}],"sequential_cutoff_bytes":null,"split_requests":false,"volume":"bcache0"}',1,'{}');
CREATE TABLE edges (
        id INTEGER PRIMARY KEY,
        volume TEXT NOT NULL,
        at_unix_ns INTEGER NOT NULL,
        kind TEXT NOT NULL,
        length_ns INTEGER NOT NULL,
        late_ns INTEGER NOT NULL
    );
INSERT INTO "edges" VALUES(1,'bcache0',1760000043000000000,'busy',2500000000,5);
CREATE TABLE live (
        volume TEXT PRIMARY KEY,
        at_unix_ns INTEGER NOT NULL,
        document TEXT NOT NULL
    ) WITHOUT ROWID
    ;
INSERT INTO "live" VALUES('',1760000044000000000,'{"pid":1}');
INSERT INTO "live" VALUES('bcache0',1760000044000000000,'{"mode":"enforce"}');
CREATE TABLE rollup_due (
        span_ns INTEGER NOT NULL,
        at_unix_ns INTEGER NOT NULL,
        volume TEXT NOT NULL,
        PRIMARY KEY (span_ns, at_unix_ns, volume)
    ) WITHOUT ROWID
    ;
INSERT INTO "rollup_due" VALUES(60000000000,1760000160000000000,'bcache0');
CREATE TABLE samples (
        volume TEXT NOT NULL,
        span_ns INTEGER NOT NULL,
        at_unix_ns INTEGER NOT NULL,
        regime TEXT NOT NULL,
        idle INTEGER,
        read_iops REAL,
        read_bytes_per_s REAL,
        write_iops REAL,
        write_bytes_per_s REAL,
        hit_ratio REAL,
        bypass_bytes INTEGER,
        destage_bytes_per_s REAL,
        dirty_in_bytes_per_s REAL,
        dirty_bytes INTEGER,
        cache_bytes INTEGER,
        in_use_ratio REAL,
        backing_depth_ios INTEGER,
        time_to_full_s REAL,
        time_to_clean_s REAL,
        paths TEXT NOT NULL,
        missing TEXT NOT NULL, samples INTEGER NOT NULL DEFAULT 1, covered_ns INTEGER NOT NULL DEFAULT 1000000000, known TEXT NOT NULL DEFAULT '{}', mode TEXT, dirty_bytes_max INTEGER, clean_ratio REAL, gap_destage_bytes INTEGER, latency TEXT,
        PRIMARY KEY (volume, span_ns, at_unix_ns)
    ) WITHOUT ROWID
    ;
INSERT INTO "samples" VALUES('bcache0',1000000000,1760000041000000000,'burst',0,100.0,400000.0,0.0,0.0,7.56097560975609761513e-01,4096,0.0,0.0,1048576,1073741824,0.42,NULL,NULL,NULL,'{"read hit":[31,126976,60000,90001],"read miss":[10,40960,4000000,9000000]}','{}',1,1000000000,'{}','enforce',NULL,NULL,NULL,'{}');
INSERT INTO "samples" VALUES('bcache0',1000000000,1760000042000000000,'burst',0,100.0,400000.0,0.0,0.0,7.61904761904761862467e-01,8192,0.0,0.0,2097152,1073741824,0.42,NULL,NULL,NULL,'{"read hit":[32,131072,60000,90002],"read miss":[10,40960,4000000,9000000]}','{}',1,1000000000,'{}','enforce',NULL,NULL,NULL,'{}');
INSERT INTO "samples" VALUES('bcache0',1000000000,1760000043000000000,'burst',0,100.0,400000.0,0.0,0.0,7.67441860465116310052e-01,12288,0.0,0.0,3145728,1073741824,0.42,NULL,NULL,NULL,'{"read hit":[33,135168,60000,90003],"read miss":[10,40960,4000000,9000000]}','{}',1,1000000000,'{}','enforce',NULL,NULL,NULL,'{}');
INSERT INTO "samples" VALUES('bcache0',1000000000,1760000101000000000,'unknown',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{}','{"foreground":"no record from the probe yet"}',1,1000000000,'{}',NULL,NULL,NULL,NULL,'{}');
INSERT INTO "samples" VALUES('bcache0',1000000000,1760000161000000000,'unknown',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,5242880,NULL,NULL,NULL,NULL,NULL,'{}','{}',1,1000000000,'{}','enforce',NULL,NULL,NULL,'{}');
INSERT INTO "samples" VALUES('bcache0',60000000000,1760000040000000000,'burst',0,100.0,400000.0,0.0,0.0,7.61904761904761862467e-01,24576,0.0,0.0,2097152,1073741824,0.42,NULL,NULL,NULL,'{"read hit":[96,393216,60000,90002,90003],"read miss":[30,122880,4000000,9000000,9000000]}','{}',3,3000000000,'{"backing_depth_ios":0}','enforce',3145728,0.0,0,NULL);
INSERT INTO "samples" VALUES('bcache0',60000000000,1760000100000000000,'unknown',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{}','{"foreground":"no record from the probe yet"}',1,1000000000,'{"backing_depth_ios":0,"clean_ratio":0,"destage_bytes_per_s":0,"dirty_bytes":0,"dirty_in_bytes_per_s":0,"idle":0,"in_use_ratio":0,"read_bytes_per_s":0,"read_iops":0,"write_bytes_per_s":0,"write_iops":0}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES('bcache0',3600000000000,1759996800000000000,'burst',0,100.0,400000.0,0.0,0.0,7.61904761904761862467e-01,24576,0.0,0.0,2097152,1073741824,0.42,NULL,NULL,NULL,'{"read hit":[96,393216,60000,90002,90003],"read miss":[30,122880,4000000,9000000,9000000]}','{"foreground":"no record from the probe yet"}',4,4000000000,'{"backing_depth_ios":0,"clean_ratio":3,"destage_bytes_per_s":3,"dirty_bytes":3,"dirty_in_bytes_per_s":3,"idle":3,"in_use_ratio":3,"read_bytes_per_s":3,"read_iops":3,"write_bytes_per_s":3,"write_iops":3}','enforce',3145728,0.0,0,NULL);
CREATE TABLE tallies (
        volume TEXT NOT NULL,
        at_unix_ns INTEGER NOT NULL,
        what TEXT NOT NULL,
        strategy TEXT NOT NULL,
        knob TEXT NOT NULL,
        outcome TEXT NOT NULL,
        count INTEGER NOT NULL,
        amount INTEGER NOT NULL,
        PRIMARY KEY (volume, at_unix_ns, what, strategy, knob, outcome)
    ) WITHOUT ROWID
    ;
INSERT INTO "tallies" VALUES('bcache0',1759996800000000000,'acted','idle_destage','','destage',1,0);
INSERT INTO "tallies" VALUES('bcache0',1759996800000000000,'action','idle_destage','writeback_percent','changed',1,0);
INSERT INTO "tallies" VALUES('bcache0',1759996800000000000,'gap','','','',1,2500000000);
CREATE INDEX decisions_by_time ON decisions (volume, at_unix_ns);
CREATE INDEX actions_by_time ON actions (volume, at_unix_ns);
CREATE INDEX actions_by_decision ON actions (decision_id);
CREATE INDEX edges_by_time ON edges (volume, at_unix_ns);
CREATE INDEX decisions_by_fate ON decisions (acted, at_unix_ns);
COMMIT;
PRAGMA user_version = 3;
