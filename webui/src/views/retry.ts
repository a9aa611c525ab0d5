// SPDX-License-Identifier: GPL-2.0-only
// Reads the data of a page, and retries while that fails. Only the newest read counts.
import { backoffMs } from "../lib/merge";

export interface Retry {
  reload: () => void;
  /** Ends the retries when the page is left. */
  stop: () => void;
}

export function retry(read: () => Promise<void>, failed: (problem: unknown) => void): Retry {
  let timer: number | undefined;
  let attempt = 0;
  let newest = 0;
  const reload = (): void => {
    window.clearTimeout(timer);
    const mine = ++newest;
    read().then(
      () => (attempt = 0),
      (problem: unknown) => {
        if (mine !== newest) return;
        failed(problem);
        window.clearTimeout(timer);
        timer = window.setTimeout(reload, backoffMs(attempt, 1000));
        attempt += 1;
      },
    );
  };
  return {
    reload,
    stop: () => {
      newest += 1;
      window.clearTimeout(timer);
    },
  };
}
