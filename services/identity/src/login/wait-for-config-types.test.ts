import { ownContext } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { waitForConfigTypesOf } from './wait-for-config-types.js'

const context = ownContext(new AbortController().signal)
const position = { timeline: 't', number: 2 }

function following(loaded: boolean) {
  const steps: unknown[] = []
  return {
    steps,
    wait: waitForConfigTypesOf(async () => loaded, {
      waitFor: async (reached) => void steps.push(reached),
      catchUp: async () => void steps.push('confirmed'),
    }),
  }
}

test('a login waits for the first load, once', async () => {
  const { steps, wait } = following(false)
  await wait(['a'], context)
  await wait(['a'], context)
  expect(steps).toEqual(['confirmed'])
})

test('a login waits for nothing when config types have been loaded before', async () => {
  const { steps, wait } = following(true)
  await wait(['a'], context)
  expect(steps).toEqual([])
})

test('what the caller has written is there', async () => {
  const { steps, wait } = following(true)
  await wait(['a'], { ...context, positions: { policy: position } })
  expect(steps).toEqual([position])
})
