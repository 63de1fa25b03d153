import { metrics } from '@overlay/process'
import { Fault } from '@overlay/rpc'
import { isAway } from '@overlay/store/postgres'
import { contentKey } from '../domain/authorization/content-key.js'
import { isAdmin, type Viewer } from '../domain/state-queries.js'
import { MOST_READS } from '../limits.js'
import type { Engine } from './engine.js'
import { accessSchemas } from './progress.js'
import type { Call } from './waits.js'

export interface OneState<T> {
  readonly answer: T
  /** The content key of what the answer shows. Empty: memory may differ from it, or it needs none. */
  readonly key: string
}

/**
 * Reads what a viewer sees of services as of one state. It comes from memory and several statements, and each of them may
 * be at another position. It is of one state if nothing that the viewer sees changed from before the first of them until
 * memory had everything that the last statement can have read. Otherwise it is read again. A change that was reverted in
 * between counts too. Administrators see all rows, whatever policies say, and of themselves what memory has: for them it
 * is read once. Where memory cannot catch up in time, only the first read waits for it.
 * @param needsKey a key costs time for each service that the viewer sees
 */
export async function readOneState<T>(
  engine: Pick<Engine, 'state' | 'onChange' | 'catchUp'>,
  viewer: Viewer,
  call: Call,
  read: () => Promise<T>,
  needsKey: (answer: T) => boolean,
): Promise<OneState<T>> {
  let hasChanged = false
  using _listening = engine.onChange((ids) => {
    hasChanged ||= ids === 'all' || ids.includes(viewer.identityId)
  })
  let isCurrent = true
  for (let reads = 1; ; reads++) {
    if (reads > 1) metrics.readsRepeated.inc()
    const isLast = viewer.isAdmin || reads === MOST_READS
    hasChanged = false
    const answer = await read().catch((err: unknown) => {
      if (isLast || !(err instanceof Overtaken)) throw err
      return undefined
    })
    isCurrent &&= await endsInTime(engine.catchUp(call, accessSchemas))
    if (answer !== undefined && (!hasChanged || isLast)) {
      // changes of services are announced to those who are administrators in memory
      const isSame = isCurrent && !hasChanged && viewer.isAdmin === isAdmin(engine.state, viewer.identityId)
      return { answer, key: isSame && needsKey(answer) ? contentKey(engine.state, viewer) : '' }
    }
  }
}

/** The viewer has lost a service that a read has found, before all of it was read. */
export class Overtaken extends Fault {
  constructor() {
    super('UNAVAILABLE', 'access to services changes, try again')
  }
}

const endsInTime = (wait: Promise<void>): Promise<boolean> =>
  wait.then(
    () => true,
    (err: unknown) => {
      if (isAway(err)) return false
      throw err
    },
  )
