import { ownContext } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { namesFrom } from './views.js'

const context = ownContext(new AbortController().signal)

test('names of a kind whose owner is not connected are an error, not missing entities', async () => {
  const names = namesFrom({})
  await expect(names('services', ['s1'], context)).rejects.toThrow('services')
  await expect(names('services', [], context)).resolves.toEqual(new Map())
})
