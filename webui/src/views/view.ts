// SPDX-License-Identifier: GPL-2.0-only

/** The visible page; `destroy` ends its timers and listeners. */
export interface View {
  destroy: () => void;
}
