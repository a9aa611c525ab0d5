// SPDX-License-Identifier: GPL-2.0-only
// Reads what a page shows, and tries again by itself as long as that fails.
import { backoffMs } from "../lib/merge";

export interface Reader {
  again: () => void;
  /** Ends with the page: nothing is read for one that nobody sees. */
  stop: () => void;
}

export function reader(read: () => Promise<void>, failed: (problem: unknown) => void): Reader {
  let timer: number | undefined;
  let attempt = 0;
  let stopped = false;
  const again = (): void => {
    window.clearTimeout(timer);
    read().then(
      () => (attempt = 0),
      (problem: unknown) => {
        if (stopped) return;
        failed(problem);
        window.clearTimeout(timer);
        timer = window.setTimeout(again, backoffMs(attempt, 1000));
        attempt += 1;
      },
    );
  };
  return {
    again,
    stop: () => {
      stopped = true;
      window.clearTimeout(timer);
    },
  };
}
