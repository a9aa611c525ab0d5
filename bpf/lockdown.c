// SPDX-License-Identifier: GPL-2.0-only
#include "lockdown.h"

#include <stdio.h>
#include <string.h>

#define LOCKDOWN_FILE "/sys/kernel/security/lockdown"

bool parse_lockdown(const char *text, char level[LOCKDOWN_BYTES])
{
	const char *begin = strchr(text, '['), *end = begin ? strchr(begin, ']') : NULL;

	if (!end || end - begin > LOCKDOWN_BYTES)
		return false;
	snprintf(level, LOCKDOWN_BYTES, "%.*s", (int)(end - begin - 1), begin + 1);
	return strcmp(level, "none");
}

bool read_lockdown(char level[LOCKDOWN_BYTES])
{
	char text[128] = "";
	FILE *f = fopen(LOCKDOWN_FILE, "re");

	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	return parse_lockdown(text, level);
}
