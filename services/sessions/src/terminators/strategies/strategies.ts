import type { TerminatorStrategy } from '@overlay/model'
import { openRandom } from './random.js'
import { openSmartrouting } from './smartrouting.js'
import { openSticky } from './sticky.js'
import type { Strategy } from './strategy.js'
import { openWeighted } from './weighted.js'

/** The strategies of this replica. */
export const openStrategies = (): Readonly<Record<TerminatorStrategy, Strategy>> => ({
  smartrouting: openSmartrouting(),
  weighted: openWeighted(),
  random: openRandom(),
  sticky: openSticky(),
})
