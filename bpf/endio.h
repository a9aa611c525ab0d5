/* SPDX-License-Identifier: GPL-2.0-only */
/* Addresses of completion functions, for the programs. `modules` are ENDIO_* of symbols.h. */
#ifndef EBBGATE_ENDIO_H
#define EBBGATE_ENDIO_H

#include "state.h"

/* Whether the addresses are known, and the modules have not been loaded again since. */
bool endio_known(const struct probe *p, uint32_t modules);

/* Reads them if they are not known; false with the reason when one is not available. */
bool resolve_endio(struct probe *p, uint32_t modules, char reason[REASON_BYTES]);

#endif
