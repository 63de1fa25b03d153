import { chooseCheapest } from './smartrouting.js'
import type { Strategy } from './strategy.js'

/** The terminator that the client used before, as long as it can be reached; else the one with the least cost. */
export const openSticky = (): Strategy => ({
  choose: (candidates, dial) =>
    candidates.find(({ id }) => id === dial.stickinessToken) ?? chooseCheapest(candidates, dial),
  givesToken: true,
})
