// SPDX-License-Identifier: GPL-2.0-only
#include "records.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "reuse_ring.h"

#define PROTOCOL 1
#define DEV_BYTES 24
/* Of all CPUs between two ticks: a reader must not spend long on one record. */
#define REUSE_REFS_MAX 1024

void write_record(struct probe *p)
{
	if (p->output_broken || !json_end(&p->json))
		return;
	p->output_broken = true;
	p->stop_reason = "stdout broken";
}

static void read_boot_id(char *id, size_t bytes)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	id[0] = '\0';
	if (!f)
		return;
	if (fgets(id, bytes, f))
		id[strcspn(id, "\n")] = '\0';
	fclose(f);
}

static void put_signals(struct probe *p)
{
	struct json *j = &p->json;

	json_open(j, "signals");
	json_str(j, "volume", p->features.volume);
	json_str(j, "edges", p->features.volume);
	json_str(j, "path", p->features.path);
	json_str(j, "bypass", p->features.bypass);
	json_str(j, "device", p->features.device);
	json_str(j, "class", p->features.class);
	json_str(j, "dm_path", p->features.dm_path);
	json_str(j, "dm_class", p->features.dm_class);
	json_close(j);
	p->reported = p->features;
}

void write_hello(struct probe *p)
{
	struct json *j = &p->json;
	char boot_id[64];

	read_boot_id(boot_id, sizeof(boot_id));
	json_begin(j, "hello", now_ns());
	json_u64(j, "protocol", PROTOCOL);
	json_str(j, "probe", p->inherits ? "bcc" : "ebpf");
	json_str(j, "version", PROBE_VERSION);
	json_str(j, "boot_id", boot_id);
	json_u64(j, "ncpu", p->ncpu);
	put_signals(p);
	write_record(p);
}

void write_signals(struct probe *p)
{
	if (!memcmp(&p->reported, &p->features, sizeof(p->features)))
		return;
	json_begin(&p->json, "signals", now_ns());
	put_signals(p);
	write_record(p);
}

static const char *dev_text(uint32_t dev, char text[DEV_BYTES])
{
	snprintf(text, DEV_BYTES, "%u:%u", dev >> 20, dev & 0xfffff);
	return text;
}

void write_track(struct probe *p, const struct volume *v)
{
	char text[CACHES_MAX][DEV_BYTES], one[DEV_BYTES];
	const char *caches[CACHES_MAX], *backing[1];
	char class[SIGNAL_BYTES] = "ok";
	struct json *j = &p->json;

	for (size_t i = 0; i < v->caches; i++)
		caches[i] = dev_text(p->device[v->cache[i]].dev, text[i]);
	json_begin(j, "track", now_ns());
	json_str(j, "vol", v->name);
	json_str(j, "kind", kind_words[v->kind]);
	json_str(j, "volume", dev_text(v->dev, one));
	json_str_array(j, "cache", caches, v->caches);
	if (v->backing >= 0)
		backing[0] = dev_text(p->device[v->backing].dev, one);
	json_str_array(j, "backing", backing, v->backing >= 0);
	if (v->class_missing[0])
		snprintf(class, sizeof(class), "missing: %s", v->class_missing);
	json_str(j, "class", class);
	write_record(p);
}

void write_untrack(struct probe *p, const struct volume *v, const char *why)
{
	json_begin(&p->json, "untrack", now_ns());
	json_str(&p->json, "vol", v->name);
	json_str(&p->json, "why", why);
	write_record(p);
}

void write_edge(struct probe *p, const struct volume *v, const struct edge *edge)
{
	json_begin(&p->json, "edge", edge->ns);
	json_str(&p->json, "vol", v->name);
	json_str(&p->json, "edge", edge->idle ? "idle" : "busy");
	json_u64(&p->json, edge->idle ? "idle_ns" : "gap_ns", edge->length_ns);
	write_record(p);
}

void write_queue(struct probe *p, const struct volume *v, const struct queue_sample *s,
		 uint64_t now)
{
	json_begin(&p->json, "queue", now);
	json_str(&p->json, "vol", v->name);
	json_u64(&p->json, "inflight", s->writes);
	json_u64(&p->json, "bytes", s->bytes);
	json_u64(&p->json, "done_ios", s->done_ios);
	json_u64(&p->json, "done_bytes", s->done_bytes);
	json_u64(&p->json, "reads", s->reads);
	json_u64(&p->json, "awaiting_write", s->awaiting_write);
	json_u64(&p->json, "fg", s->foreground);
	write_record(p);
}

void write_reuse(struct probe *p, struct volume *v, uint64_t now)
{
	struct reuse_ref refs[REUSE_REFS_MAX];
	unsigned long long values[REUSE_REFS_MAX];
	size_t n = 0;

	for (uint32_t cpu = 0; cpu < p->ncpu; cpu++) {
		struct eb_vol_cpu *c = &p->cpu[cpu].volume[volume_index(p, v)];

		n += reuse_take(&c->reuse, refs + n, REUSE_REFS_MAX - n, &v->lost_reuse);
	}
	if (!n)
		return;
	reuse_sort(refs, n);
	for (size_t i = 0; i < n; i++)
		values[i] = refs[i].ref;
	json_begin(&p->json, "reuse", now);
	json_str(&p->json, "vol", v->name);
	json_array(&p->json, "refs", values, n);
	write_record(p);
}

void write_error(struct probe *p, const char *text, const char *line)
{
	json_begin(&p->json, "error", now_ns());
	json_str(&p->json, "text", text);
	json_str(&p->json, "cmd", line);
	write_record(p);
}

static const struct {
	const char *what, *text;
} warnings[WARN_KINDS] = {
	[WARN_RING_LOST] = { "ring_lost", "edges that did not fit the ring buffer" },
	[WARN_UNMATCHED] = { "unmatched",
			     "requests whose path is not known (latency not counted)" },
	[WARN_STREAMS] = { "streams", "live streams pushed out of the stream table" },
	[WARN_TABLE_FULL] = { "table_full", "requests pushed out of the path table" },
	[WARN_CHAIN] = { "chain", "requests of more bios than are followed" },
	[WARN_RECURSION] = { "missed", "program runs that the kernel skipped; requests in flight "
				       "are counted anew" },
};

static void write_warning(struct probe *p, enum warning_kind kind, uint64_t now)
{
	struct warning *w = &p->warning[kind];
	uint64_t n = w->n;

	w->n = 0;
	/* The count of a volume that was untracked is gone. */
	if (n < w->reported)
		w->reported = n;
	if (n == w->reported || (w->reported_ns && now - w->reported_ns < NS_PER_S))
		return;
	w->reported = n;
	w->reported_ns = now;
	json_begin(&p->json, "warn", now);
	json_str(&p->json, "what", warnings[kind].what);
	json_u64(&p->json, "n", n);
	json_str(&p->json, "text", warnings[kind].text);
	write_record(p);
}

void write_warnings(struct probe *p, uint64_t now)
{
	for (int kind = 0; kind < WARN_KINDS; kind++)
		write_warning(p, kind, now);
}

void write_bye(struct probe *p)
{
	json_begin(&p->json, "bye", now_ns());
	json_str(&p->json, "why", p->stop_reason);
	write_record(p);
}
