import { isAway } from '@overlay/platform/postgres'
import { contentKey } from '../domain/content.js'
import { isAdmin, type Viewer } from '../domain/queries.js'
import type { Engine } from './engine.js'
import type { Call } from './waits.js'

export interface ViewWatch extends Disposable {
  /** The content key of the page that was read since the watch began. Empty: memory may differ from the page. */
  key(call: Call): Promise<string>
}

/**
 * Watches what one viewer sees while a page of services is read. The page comes from several statements, its key from
 * memory, and each of them may be at another position. The page has a key only if nothing that the viewer sees changed
 * from before the first statement until memory had everything that the last one can have read. A change that was
 * reverted in between counts too.
 */
export function watchView(
  { state, onChange, catchUpOwn }: Pick<Engine, 'state' | 'onChange' | 'catchUpOwn'>,
  viewer: Viewer,
): ViewWatch {
  let hasChanged = false
  const listening = onChange((ids) => {
    hasChanged ||= ids === 'all' || ids.includes(viewer.identityId)
  })
  return {
    async key(call) {
      if (hasChanged || !(await endsInTime(catchUpOwn(call))) || hasChanged) return ''
      // changes of services are announced to those who are administrators in memory
      return viewer.isAdmin === isAdmin(state, viewer.identityId) ? contentKey(state, viewer) : ''
    },
    [Symbol.dispose]: () => listening[Symbol.dispose](),
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
