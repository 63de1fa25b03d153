import {
  ApiSessionAdded,
  CreateTerminatorV2Response,
  CreateTunnelTerminatorV2Response,
  ctrlType,
  DataState,
  DataStateChangeSet,
  edgeType,
  ModelAction,
  ModelEvent,
  modelType,
} from '@overlay/channel'
import { expect, test } from 'vitest'
import { isGrant, tokensIn } from './hostile-router.js'

const granted = (type: number, body: Uint8Array = new Uint8Array()) =>
  isGrant({ type, body: Buffer.from(body) })

test('routes, circuits and terminators are grants, refusals are not', () => {
  const terminator = (result: number) =>
    CreateTerminatorV2Response.encode({
      terminatorId: '',
      result,
      message: '',
      errorCode: 0,
      retryHint: 0,
    }).finish()
  expect(granted(edgeType.createTerminatorV2Response, terminator(2))).toBe(false)
  expect(granted(edgeType.createTerminatorV2Response, terminator(0))).toBe(true)
  const tunnel = (result: number) =>
    CreateTunnelTerminatorV2Response.encode(CreateTunnelTerminatorV2Response.fromPartial({ result })).finish()
  expect(granted(edgeType.createTunnelTerminatorV2Response, tunnel(2))).toBe(false)
  expect(granted(edgeType.createTunnelTerminatorV2Response, tunnel(0))).toBe(true)
  for (const type of [
    ctrlType.route,
    edgeType.createCircuitV2Response,
    edgeType.createTunnelTerminatorResponse,
  ])
    expect(granted(type)).toBe(true)
  expect(granted(edgeType.error)).toBe(false)
})

test('tokens of API sessions are found', () => {
  const session = { token: 't', certFingerprints: [], id: 'x', identityId: '' }
  const body = Buffer.from(ApiSessionAdded.encode({ isFullState: true, apiSessions: [session] }).finish())
  expect(tokensIn({ type: edgeType.apiSessionAdded, body })).toEqual(['t'])
  expect(tokensIn({ type: edgeType.error, body })).toEqual([])
})

test('what policies show to a router is a grant, keys and names of config types are not', () => {
  const { CREATE, DELETE } = ModelAction
  const state = (...events: object[]) =>
    DataState.encode(
      DataState.fromPartial({ events: events.map((one) => ModelEvent.fromPartial(one)) }),
    ).finish()
  expect(granted(modelType.dataState, state({ publicKey: {} }, { configType: {} }, { revocation: {} }))).toBe(
    false,
  )
  for (const content of [{ identity: {} }, { service: {} }, { servicePolicy: {} }, { config: {} }]) {
    expect(granted(modelType.dataState, state({ configType: {} }, content))).toBe(true)
    const set = (action: ModelAction) =>
      DataStateChangeSet.encode(
        DataStateChangeSet.fromPartial({ changes: [{ action, ...content }] }),
      ).finish()
    expect([CREATE, DELETE].map((action) => granted(modelType.changeSet, set(action)))).toEqual([true, false])
  }
})
