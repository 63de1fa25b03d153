import type { Channel } from '@overlay/channel'

/** Resolves once the channel is closed. */
export const untilClosed = ({ closed }: Channel): Promise<void> =>
  new Promise((resolve) => {
    if (closed.aborted) resolve()
    else closed.addEventListener('abort', () => resolve(), { once: true })
  })
