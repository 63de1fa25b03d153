import { ownContext } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { configTypeNames, configTypes } from './config-types.js'

const change = (id: string, name?: string) => ({
  kind: 'config-types',
  id,
  json: Buffer.from(name === undefined ? '' : JSON.stringify({ name })),
  atMs: 0,
  number: 0,
})

const context = ownContext(new AbortController().signal)
const loaded = {
  position: () => ({ timeline: 't', number: 1 }),
  reach: async () => undefined,
  confirm: async () => undefined,
}

test.each([
  ['nothing asked, nothing given', [], []],
  ['all is all, whatever stands beside it', ['t1', 'all'], ['all']],
  ['ids stay', ['t1'], ['t1']],
  ['names become ids', ['host.v1'], ['t1']],
  ['each counts once', ['host.v1', 't1'], ['t1']],
  ['what nobody knows is dropped', ['nothing', 'gone.v1', 'intercept.v1'], ['t2']],
])('%s', async (_rule, wanted, expected) => {
  const names = configTypeNames()
  names.apply([change('t1', 'host.v1'), change('t2', 'intercept.v1'), change('t3', 'gone.v1'), change('t3')])
  const reached: unknown[] = []
  const projection = {
    reach: async (position: unknown) => void reached.push(position),
  } as unknown as Projection
  const context = ownContext(new AbortController().signal)
  expect(await configTypes(names, projection).idsOf(wanted, context)).toEqual(expected)
})
