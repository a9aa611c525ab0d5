// SPDX-License-Identifier: GPL-2.0-only

/** A page that is on the screen; `destroy` ends its timers and listeners. */
export interface View {
  destroy: () => void;
}
