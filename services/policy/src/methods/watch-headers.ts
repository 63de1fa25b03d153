import type { Positions } from '@overlay/rpc'
import type { Engine } from '../engine/engine.js'

export interface HeaderChanges {
  readonly positions: Positions
  readonly identityIds: string[]
  readonly all: boolean
}

const SIGN_OF_LIFE_MS = 1000
const NAMED = 10_000

/** Whose headers have changed. Says nothing while the engine itself does not know. */
export async function* watchHeaders(
  engine: Pick<Engine, 'positions' | 'trusted' | 'onChange'>,
  signal: AbortSignal,
): AsyncGenerator<HeaderChanges> {
  const changed = new Set<string>()
  let all = false
  let wake = (): void => undefined
  using _listening = engine.onChange((ids) => {
    if (ids === 'all') all = true
    else for (const id of ids) changed.add(id)
    if (changed.size > NAMED) all = true
    if (all) changed.clear()
    wake()
  })
  const pause = (): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, SIGN_OF_LIFE_MS)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  signal.addEventListener('abort', () => wake(), { once: true })

  while (!signal.aborted) {
    const next = pause() // from before the message on: what happens while it is sent wakes us
    if (engine.trusted()) {
      const message = { positions: engine.positions(), identityIds: [...changed], all }
      changed.clear()
      all = false
      yield message
    }
    await next
  }
}
