-- SPDX-License-Identifier: GPL-2.0-only
-- A file as ebbgate 0.1.0 wrote it, with a little of everything.
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
INSERT INTO "actions" VALUES(2,1,'bcache0',1760000042100000000,8,'writeback_rate','8','20480','idle_destage','idle 410 ms >= wait 300 ms','failed','8','EIO',4000000);
INSERT INTO "actions" VALUES(3,2,'bcache0',1760000043100000000,9,'sequential_cutoff','4194304','8388608','idle_destage','idle 410 ms >= wait 300 ms','manual',NULL,'',NULL);
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
    );
INSERT INTO "decisions" VALUES(1,'bcache0',1760000042000000000,1000000000,'paced 10485760','idle_destage',NULL,'','{"at_ns":1000000000,"collect_garbage":false,"congestion_bypass":null,"cutoff_strategy":"","gate":{"depth_ios":0,"kind":"paced","pulse_ns":0,"rate_bytes_per_s":10485760},"gate_strategy":"idle_destage","proposals":[{"collect_garbage":false,"conditions":[{"comparison":">=","holds":true,"measured":"410 ms","signal":"idle","threshold":"300 ms"}],"congestion_bypass":null,"gate":{"depth_ios":0,"kind":"paced","pulse_ns":0,"rate_bytes_per_s":10485760},"reason":"destage: idle 410 ms >= wait 300 ms","sequential_cutoff_bytes":null,"split_requests":false,"strategy":"idle_destage","unsupported":"","wins":["gate"]},{"collect_garbage":false,"conditions":[{"comparison":">=","holds":true,"measured":"410 ms","signal":"idle","threshold":"300 ms"}],"congestion_bypass":null,"gate":null,"reason":"idle 410 ms >= wait 300 ms","sequential_cutoff_bytes":null,"split_requests":false,"strategy":"stream_bypass","unsupported":"no such knob","wins":[]}],"sequential_cutoff_bytes":null,"split_requests":false,"volume":"bcache0"}');
INSERT INTO "decisions" VALUES(2,'bcache0',1760000043000000000,1000000000,'closed','idle_destage',NULL,'','{"at_ns":1000000000,"collect_garbage":false,"congestion_bypass":null,"cutoff_strategy":"","gate":{"depth_ios":0,"kind":"closed","pulse_ns":0,"rate_bytes_per_s":0},"gate_strategy":"idle_destage","proposals":[{"collect_garbage":false,"conditions":[{"comparison":">=","holds":true,"measured":"410 ms","signal":"idle","threshold":"300 ms"}],"congestion_bypass":null,"gate":{"depth_ios":0,"kind":"closed","pulse_ns":0,"rate_bytes_per_s":0},"reason":"wait: a request arrived","sequential_cutoff_bytes":null,"split_requests":false,"strategy":"idle_destage","unsupported":"","wins":["gate"]}],"sequential_cutoff_bytes":null,"split_requests":false,"volume":"bcache0"}');
CREATE TABLE edges (
        id INTEGER PRIMARY KEY,
        volume TEXT NOT NULL,
        at_unix_ns INTEGER NOT NULL,
        kind TEXT NOT NULL,
        length_ns INTEGER NOT NULL,
        late_ns INTEGER NOT NULL
    );
INSERT INTO "edges" VALUES(1,'bcache0',1760000042000000000,'idle',300000000,3);
INSERT INTO "edges" VALUES(2,'bcache0',1760000043000000000,'busy',2500000000,5);
CREATE TABLE live (
        volume TEXT PRIMARY KEY,
        at_unix_ns INTEGER NOT NULL,
        document TEXT NOT NULL
    ) WITHOUT ROWID
    ;
INSERT INTO "live" VALUES('',1760000044000000000,'{"pid":1}');
INSERT INTO "live" VALUES('bcache0',1760000044000000000,'{"mode":"enforce"}');
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
        missing TEXT NOT NULL,
        PRIMARY KEY (volume, span_ns, at_unix_ns)
    ) WITHOUT ROWID
    ;
INSERT INTO "samples" VALUES('bcache0',1000000000,1760000041000000000,'burst',0,100.0,400000.0,0.0,0.0,7.56097560975609761513e-01,4096,0.0,0.0,1048576,1073741824,0.42,NULL,NULL,NULL,'[{"bytes":126976,"ios":31,"op":"read","p50_ns":60000,"p99_ns":90001,"path":"hit"},{"bytes":40960,"ios":10,"op":"read","p50_ns":4000000,"p99_ns":9000000,"path":"miss"}]','{}');
INSERT INTO "samples" VALUES('bcache0',1000000000,1760000042000000000,'burst',0,100.0,400000.0,0.0,0.0,7.61904761904761862467e-01,8192,0.0,0.0,2097152,1073741824,0.42,NULL,NULL,NULL,'[{"bytes":131072,"ios":32,"op":"read","p50_ns":60000,"p99_ns":90002,"path":"hit"},{"bytes":40960,"ios":10,"op":"read","p50_ns":4000000,"p99_ns":9000000,"path":"miss"}]','{}');
INSERT INTO "samples" VALUES('bcache0',1000000000,1760000043000000000,'burst',0,100.0,400000.0,0.0,0.0,7.67441860465116310052e-01,12288,0.0,0.0,3145728,1073741824,0.42,NULL,NULL,NULL,'[{"bytes":135168,"ios":33,"op":"read","p50_ns":60000,"p99_ns":90003,"path":"hit"},{"bytes":40960,"ios":10,"op":"read","p50_ns":4000000,"p99_ns":9000000,"path":"miss"}]','{}');
INSERT INTO "samples" VALUES('bcache0',1000000000,1760000101000000000,'unknown',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]','{"foreground":"no record from the probe yet"}');
INSERT INTO "samples" VALUES('vg-data',1000000000,1760000045000000000,'unknown',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,'[]','{}');
CREATE INDEX decisions_by_time ON decisions (volume, at_unix_ns);
CREATE INDEX actions_by_time ON actions (volume, at_unix_ns);
CREATE INDEX actions_by_decision ON actions (decision_id);
CREATE INDEX edges_by_time ON edges (volume, at_unix_ns);
COMMIT;
PRAGMA user_version = 1;
