import { Fault, ownContext } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { settling } from './settling.js'

const written = { id: 'one', position: { timeline: 't', number: 7 } }
const context = ownContext(new AbortController().signal)
const following = (reach: () => Promise<object>) => settling('identity', [{ reach }])(written, context)

test('what is committed is answered, whether or not those who follow have taken their steps', async () => {
  expect(await following(async () => ({}))).toBe(written)
  for (const code of ['UNAVAILABLE', 'TIMEOUT'] as const)
    expect(await following(() => Promise.reject(new Fault(code)))).toBe(written)
})

test('a follower that fails otherwise is not passed over', async () => {
  await expect(following(() => Promise.reject(new Fault('UNHANDLED')))).rejects.toMatchObject({
    code: 'UNHANDLED',
  })
})
