// SPDX-License-Identifier: GPL-2.0-only
// Reads the data of a page and draws it, and retries while that fails. Only the newest read counts: an
// older answer that comes later would bring back what is no longer so.
import { backoffMs } from "../lib/merge";

export interface Retry {
  reload: () => void;
  /** Ends the retries when the page is left. */
  stop: () => void;
}

export function retry<Data>(
  read: () => Promise<Data>,
  draw: (data: Data) => void,
  failed: (problem: unknown) => void,
): Retry {
  let timer: number | undefined;
  let attempt = 0;
  let newest = 0;
  const reload = (): void => {
    window.clearTimeout(timer);
    const mine = ++newest;
    read().then(
      (data) => {
        if (mine !== newest) return;
        attempt = 0;
        draw(data);
      },
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
