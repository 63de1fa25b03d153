import { ApiSessionAdded, CreateTerminatorV2Response, ctrlType, edgeType } from '@overlay/channel'
import { expect, test } from 'vitest'
import { isGrant } from './hostile-router.js'

const granted = (type: number, body: Uint8Array = new Uint8Array()) =>
  isGrant({ type, body: Buffer.from(body) })

test('sessions, routes, circuits and terminators are grants, refusals and empty states are not', () => {
  const session = { token: 't', certFingerprints: [], id: 'x' }
  const added = (apiSessions: (typeof session)[]) =>
    ApiSessionAdded.encode({ isFullState: true, apiSessions }).finish()
  expect(granted(edgeType.apiSessionAdded, added([]))).toBe(false)
  expect(granted(edgeType.apiSessionAdded, added([session]))).toBe(true)
  const terminator = (result: number) =>
    CreateTerminatorV2Response.encode({ terminatorId: '', result, message: '' }).finish()
  expect(granted(edgeType.createTerminatorV2Response, terminator(2))).toBe(false)
  expect(granted(edgeType.createTerminatorV2Response, terminator(0))).toBe(true)
  for (const type of [
    ctrlType.route,
    edgeType.createCircuitV2Response,
    edgeType.createTunnelTerminatorResponse,
  ])
    expect(granted(type)).toBe(true)
  expect(granted(edgeType.error)).toBe(false)
})
