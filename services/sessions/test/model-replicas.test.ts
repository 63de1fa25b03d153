import {
  DataState,
  DataStateChangeSet,
  modelType,
  type Outgoing,
  SubscribeToDataModelRequest,
} from '@overlay/channel'
import { expect, test } from 'vitest'
import { fakeIdentity } from './access.js'
import { type Replica, startControlNetwork } from './control.js'
import { fakeModels, identityEvent } from './models.js'
import { ownersFor } from './owners.js'
import { connectRouter, groupedHello, type TestRouter } from './test-router.js'

const subscription = (some: Partial<SubscribeToDataModelRequest>): Outgoing => ({
  type: modelType.subscribe,
  body: SubscribeToDataModelRequest.encode(
    SubscribeToDataModelRequest.fromPartial({
      subscriptionDurationSeconds: 300,
      subscriptionId: 's',
      ...some,
    }),
  ).finish(),
})
const changesFor = ({ received }: TestRouter) =>
  received
    .filter(({ type }) => type === modelType.changeSet)
    .map(({ body }) => DataStateChangeSet.decode(body))
    .filter(({ isSynthetic }) => !isSynthetic)

test('a router is shown as synchronized when it has its model, at whichever replica', async () => {
  await using network = await startControlNetwork({ hasBus: true })
  const key = await network.createRouter('r')
  const models = fakeModels()
  const owners = ownersFor(fakeIdentity(), [key.id], models)
  const one = await network.replica('one', { owners })
  const two = await network.replica('two', { owners })
  const shownBy = ({ control }: Replica) => control.presence.of(key.id).map(({ syncStatus }) => syncStatus)

  models.commit(identityEvent('alice'))
  const first = await connectRouter({ port: one.port, key, headers: groupedHello })
  await expect.poll(() => shownBy(two)).toEqual(['SYNC_IN_PROGRESS'])
  first.channel.send(subscription({}))
  const state = DataState.decode((await first.message(modelType.dataState)).body)
  expect(state.events.map(({ identity }) => identity?.id)).toEqual(['alice'])
  await expect.poll(() => shownBy(two)).toEqual(['SYNC_DONE'])
  expect((await one.control.traffic?.model.validateModel('other', false)) ?? 'none').toBe('none')

  await one.kill()
  models.commit(identityEvent('bob'))
  const second = await connectRouter({ port: two.port, key, headers: groupedHello })
  second.channel.send(subscription({ currentIndex: state.endIndex, timelineId: state.timelineId }))
  await expect.poll(() => changesFor(second)).toMatchObject([{ previousIndex: state.endIndex }])
  expect(second.received.some(({ type }) => type === modelType.dataState)).toBe(false)
  await expect.poll(() => shownBy(two)).toContain('SYNC_DONE')
})
