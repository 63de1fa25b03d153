import { type Context, ownContext } from '@overlay/rpc'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { authority, certify, type Holder } from '../../test/certificates.js'
import { type Chains, openChains } from './chains.js'

const now = new Date()
const at = (sourceAddress: string): Context => ({
  ...ownContext(new AbortController().signal),
  sourceAddress,
})

let root: Holder
let between: Holder
let client: Holder
let stranger: Holder
beforeAll(async () => {
  root = await authority('root')
  between = await authority('between', root)
  client = await certify({ name: 'client', issuer: between })
  stranger = await certify({ name: 'stranger' })
})

afterEach(() => vi.useRealTimers())

const find = (chains: Chains, address: string, ...presented: readonly Holder[]) =>
  chains.find(
    presented.map(({ certificate }) => certificate),
    [root.certificate],
    at(address),
    now,
  )

test('after many chains that lead nowhere, those of the source are refused for a while, and no others', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  const chains = openChains()
  for (let i = 0; i < 20; i++) expect(await find(chains, '192.0.2.1', stranger, between)).toBeUndefined()
  const refused = { code: 'SERVER_TOO_MANY_REQUESTS', retryAfterSeconds: 1 }
  await expect(find(chains, '192.0.2.1', stranger, between)).rejects.toMatchObject(refused)
  await expect(find(chains, '192.0.2.1', client, between)).rejects.toMatchObject(refused)
  expect(await find(chains, '192.0.2.2', client, between)).toHaveLength(3)
  expect(await find(chains, '192.0.2.1', between)).toHaveLength(2) // a leaf whose issuer is trusted
  vi.advanceTimersByTime(1000)
  expect(await find(chains, '192.0.2.1', client, between)).toHaveLength(3)
})

test('chains that lead to a trusted authority have no limit', async () => {
  const chains = openChains()
  for (let i = 0; i < 50; i++) expect(await find(chains, '192.0.2.1', client, between)).toHaveLength(3)
})

test('clients of one of several sets of authorities have no limit, in whichever order the sets are tried', async () => {
  const chains = openChains()
  const { certificate: other } = await authority('other')
  const presented = [client.certificate, between.certificate]
  const logIn = async () => {
    expect(await chains.find(presented, [other], at('192.0.2.1'), now)).toBeUndefined()
    return find(chains, '192.0.2.1', client, between)
  }
  for (const chain of await Promise.all(Array.from({ length: 50 }, logIn))) expect(chain).toHaveLength(3)
})

test('a full queue refuses the chains of the source that has most in it', async () => {
  const chains = openChains()
  const flood = Array.from({ length: 300 }, () => find(chains, '192.0.2.1', client, between))
  const one = find(chains, '192.0.2.2', client, between)
  const results = await Promise.allSettled(flood)
  const refused = results.filter(({ status }) => status === 'rejected')
  expect(refused.length).toBeGreaterThan(40)
  for (const { reason } of refused as PromiseRejectedResult[])
    expect(reason).toMatchObject({ code: 'SERVER_TOO_MANY_REQUESTS' })
  expect(await one).toHaveLength(3)
})
