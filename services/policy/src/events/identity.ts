import type { Effects } from '@overlay/platform'
import sql from 'sql-template-tag'
import { forgetPosture } from '../store/posture-data.js'
import { deleteServiceConfigs } from '../store/service-config.js'
import { notePassed, notePassedAnew, PASSING, passedIn } from './passed-factors.js'
import { dropAll, goneIn } from './removed-entities.js'

/**
 * An identity that is gone is named by no policy, has no configs of its own, and what it said is forgotten. A code that
 * was given in an API session is what its endpoint says.
 */
export const identityEffects: Effects = {
  kinds: ['identities', PASSING],
  concerns: (change) =>
    change.kind === 'identities' ? change.json.length === 0 : passedIn(change) !== undefined,
  async apply(tx, changes) {
    const passed = await notePassed(tx, changes)
    const gone = goneIn(changes.filter(({ kind }) => kind === 'identities'))
    if (gone.length === 0) return passed
    const configs = await deleteServiceConfigs(tx, sql`identity_id = any(${gone})`)
    const posture = await forgetPosture(tx, gone)
    return [...passed, ...(await dropAll(tx, 'identities', gone)), ...configs, ...posture]
  },
  // ids are not given twice, so a name that is left over selects nobody; one that is too new to be loaded must stay
  reload: notePassedAnew,
}
