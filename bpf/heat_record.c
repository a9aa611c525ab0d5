// SPDX-License-Identifier: GPL-2.0-only
#include "heat_record.h"

#include "clock.h"
#include "heat_table.h"
#include "records.h"

#define HEAT_PERIOD_NS (10 * NS_PER_S)
/* The reader refuses more (HEAT_CHUNKS_MAX in controller/ebbgate/probes/protocol.py). */
#define RECORD_CHUNKS_MAX 2048
#define HEAT_NUMBERS 4

/* Misses without room since the last record. */
static uint64_t take_dropped(const struct probe *p, struct volume *v)
{
	uint64_t before = v->heat_dropped;

	v->heat_dropped = 0;
	for (uint32_t cpu = 0; cpu < p->ncpu; cpu++)
		v->heat_dropped += __atomic_load_n(
			&p->cpu[cpu].volume[volume_index(p, v)].lost_heat, __ATOMIC_RELAXED);
	return v->heat_dropped - before;
}

static void put_chunks(struct json *j, const struct heat_chunk *chunks, size_t n)
{
	static unsigned long long numbers[HEAT_NUMBERS * RECORD_CHUNKS_MAX];
	unsigned long long *next = numbers;

	for (size_t i = 0; i < n; i++) {
		*next++ = chunks[i].chunk;
		*next++ = chunks[i].sync_reads;
		*next++ = chunks[i].other_reads;
		*next++ = chunks[i].writes;
	}
	json_numbers(j, "chunks", numbers, next - numbers);
}

void write_heat(struct probe *p, struct volume *v, uint64_t now)
{
	static struct heat_chunk chunks[HEAT_ENTRIES];
	uint64_t left_out = 0;
	size_t n, shown;

	if (!v->has_heat)
		return;
	n = heat_take(volume_heat(p, v), chunks);
	shown = n < RECORD_CHUNKS_MAX ? n : RECORD_CHUNKS_MAX;
	for (size_t i = shown; i < n; i++)
		left_out += heat_misses(&chunks[i]);
	json_begin(&p->json, "heat", now);
	json_str(&p->json, "vol", v->name);
	json_u64(&p->json, "since_ns", v->heat_since_ns);
	put_chunks(&p->json, chunks, shown);
	json_u64(&p->json, "left_out", left_out);
	json_u64(&p->json, "dropped", take_dropped(p, v));
	write_record(p);
	v->heat_since_ns = now;
}

void check_heat(struct probe *p, struct volume *v, uint64_t now)
{
	if (now - v->heat_since_ns >= HEAT_PERIOD_NS)
		write_heat(p, v, now);
}
