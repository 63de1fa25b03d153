import { Fault } from '@overlay/rpc'
import { describe, expect, test } from 'vitest'
import { openShares, type ShareLimits } from './shares.js'

/** Windows that a test ends. */
function openTurns(limits: Partial<ShareLimits> = {}) {
  let utilization = 0
  let next: (() => void) | undefined
  const shares = openShares(
    { requestsPerSource: 0, requestsPerSession: 0, ...limits },
    {
      after: (turn) => {
        next = turn
      },
      utilization: () => utilization,
    },
  )
  /** Ends the window with this utilization, and runs what may run then. */
  async function turn(of = 0): Promise<void> {
    utilization = of
    const due = next
    next = undefined
    void due?.()
    await Promise.resolve()
  }
  /** `count` requests of a source at once: how many ran, wait and are refused. */
  function ask(source: string, count: number) {
    const asked = { ran: 0, waiting: 0, refused: 0, retryAfter: new Set<number | undefined>() }
    for (let i = 0; i < count; i++) {
      try {
        const held = shares.takeSource(source)
        if (!held) asked.ran++
        else {
          asked.waiting++
          void held.then(() => {
            asked.waiting--
            asked.ran++
          })
        }
      } catch (err) {
        if (!(err instanceof Fault) || err.code !== 'SERVER_TOO_MANY_REQUESTS') throw err
        asked.refused++
        asked.retryAfter.add(err.retryAfterSeconds)
      }
    }
    return asked
  }
  return { shares, turn, ask, isArmed: () => next !== undefined }
}

describe('without a setting', () => {
  test('a source may have anything while there is time to spare, or while it is alone', async () => {
    const { ask, turn } = openTurns()
    expect(ask('a', 5000).ran).toBe(5000)
    await turn(1)
    expect(ask('a', 5000).ran).toBe(5000)
    ask('b', 10)
    await turn(0.5)
    expect(ask('a', 5000).ran).toBe(5000)
  })

  test('of a saturated gateway, a source has at most twice the mean', async () => {
    const { ask, turn } = openTurns()
    const others = ['b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']
    ask('a', 10_000)
    for (const other of others) ask(other, 10)
    await turn(1)
    const flood = ask('a', 10_000)
    expect(flood).toMatchObject({ ran: 2018, waiting: 3 * 2018, refused: 10_000 - 4 * 2018 })
    for (const other of others) expect(ask(other, 10)).toMatchObject({ ran: 10, waiting: 0 })
  })

  test('clients that all ask alike are not limited', async () => {
    const { ask, turn } = openTurns()
    for (const round of [1, 2, 3]) {
      for (let i = 0; i < 160; i++) expect(ask(`source ${i}`, 30 + round)).toMatchObject({ ran: 30 + round })
      await turn(1)
    }
  })

  test('a few requests are never too many', async () => {
    const { ask, turn } = openTurns()
    for (let i = 0; i < 50; i++) ask(`source ${i}`, 1)
    await turn(1)
    expect(ask('a', 100)).toMatchObject({ ran: 100, waiting: 0 })
    expect(ask('a', 1)).toMatchObject({ ran: 0, waiting: 1 })
  })

  test('the share grows when time is left again, until nothing waits', async () => {
    const { ask, turn } = openTurns()
    ask('a', 1000)
    for (const other of 'bcdefghij') ask(other, 1)
    await turn(1)
    const flood = ask('a', 700)
    expect(flood).toMatchObject({ ran: 202, waiting: 498 })
    await turn(0.5)
    expect(flood).toMatchObject({ ran: 606, waiting: 94 })
    await turn(0.5)
    expect(flood).toMatchObject({ ran: 700, waiting: 0 })
    await turn(0.5)
    expect(ask('a', 5000).ran).toBe(5000)
  })
})

describe('with a setting', () => {
  test('what is more waits for the next windows in order, and is refused with a time beyond three', async () => {
    const { ask, turn } = openTurns({ requestsPerSource: 10 })
    const asked = ask('a', 50)
    expect(asked).toMatchObject({ ran: 10, waiting: 30, refused: 10 })
    expect([...asked.retryAfter]).toEqual([4])
    expect(ask('b', 10)).toMatchObject({ ran: 10 })
    await turn()
    expect(asked).toMatchObject({ ran: 20, waiting: 20 })
    expect(ask('a', 1)).toMatchObject({ ran: 0, waiting: 1 }) // behind the others
    await turn()
    await turn()
    expect(asked).toMatchObject({ ran: 40, waiting: 0 })
  })

  test('sessions are counted apart from sources', () => {
    const { shares } = openTurns({ requestsPerSession: 1 })
    expect(shares.takeSession('one')).toBeUndefined()
    expect(shares.takeSession('one')).toBeInstanceOf(Promise)
    expect(shares.takeSession('other')).toBeUndefined()
    for (let i = 0; i < 100; i++) expect(shares.takeSource('a')).toBeUndefined()
  })
})

test('nothing is counted at rest', async () => {
  const { ask, turn, isArmed } = openTurns({ requestsPerSource: 10 })
  expect(isArmed()).toBe(false)
  ask('a', 15)
  expect(isArmed()).toBe(true)
  await turn()
  await turn()
  expect(isArmed()).toBe(true)
  await turn()
  expect(isArmed()).toBe(false)
})
