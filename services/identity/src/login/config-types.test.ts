import { ownContext } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { openConfigTypes } from './config-types.js'

const context = ownContext(new AbortController().signal)
const position = { timeline: 't', number: 2 }

function following(loaded: boolean) {
  const steps: unknown[] = []
  return {
    steps,
    types: openConfigTypes(async () => loaded, {
      waitFor: async (reached) => void steps.push(reached),
      catchUp: async () => void steps.push('confirmed'),
    }),
  }
}

test('a login waits for the first load, once', async () => {
  const { steps, types } = following(false)
  await types.ready(context)
  await types.ready(context)
  expect(steps).toEqual(['confirmed'])
})

test('a login waits for nothing when config types have been loaded before', async () => {
  const { steps, types } = following(true)
  await types.ready(context)
  expect(steps).toEqual([])
})

test('what the caller has written is there', async () => {
  const { steps, types } = following(true)
  await types.ready({ ...context, positions: { policy: position } })
  expect(steps).toEqual([position])
})
