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
  expect(await configTypes(names, loaded).idsOf(wanted, context)).toEqual(expected)
})

test('names wait for the first load', async () => {
  const names = configTypeNames()
  const loading = {
    ...loaded,
    position: () => undefined,
    confirm: async () => names.apply([change('t1', 'host.v1')]),
  }
  expect(await configTypes(names, loading).idsOf(['host.v1'], context)).toEqual(['t1'])
})

test('what the caller has written counts', async () => {
  const names = configTypeNames()
  const behind = { ...loaded, reach: async () => names.apply([change('t1', 'host.v1')]) }
  const after = { ...context, positions: { policy: { timeline: 't', number: 2 } } }
  expect(await configTypes(names, behind).idsOf(['host.v1'], after)).toEqual(['t1'])
})
