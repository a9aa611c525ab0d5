-- SPDX-License-Identifier: GPL-2.0-only
-- A file as ebbgate 0.1.0 wrote it, with a little of everything.
BEGIN TRANSACTION;
CREATE TABLE intents (
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        volume TEXT,
        args TEXT NOT NULL,
        who TEXT NOT NULL,
        at_unix_ns INTEGER NOT NULL,
        resolved_unix_ns INTEGER,
        ok INTEGER,
        outcome TEXT
    );
INSERT INTO "intents" VALUES(1,'mode','bcache0','{"mode":"enforce"}','root',1760000040000000000,1760000040000000001,1,'bcache0: enforce');
INSERT INTO "intents" VALUES(2,'hold',NULL,'{"on":true}','alice',1760000040000000002,NULL,NULL,NULL);
CREATE TABLE modes (
        volume TEXT PRIMARY KEY,
        mode TEXT NOT NULL,
        at_unix_ns INTEGER NOT NULL
    ) WITHOUT ROWID
    ;
INSERT INTO "modes" VALUES('bcache0','enforce',1760000040000000001);
CREATE INDEX intents_pending ON intents (id) WHERE resolved_unix_ns IS NULL;
COMMIT;
PRAGMA user_version = 1;
