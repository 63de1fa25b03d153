import { randomBytes } from 'node:crypto'
import {
  capability,
  encodeBits,
  encodeBool,
  encodeText,
  encodeVersion,
  groupedHeader,
  type Headers,
  headerKey,
} from '@overlay/channel'
import { newConnectionId, shownControllerId } from '../domain/connection-id.js'
import { controllerVersionFor } from '../domain/router-features.js'
import { SECRET_BYTES } from '../limits.js'
import type { HelloGroup, RouterHello } from './check-hello.js'

const { createTerminatorV2, singleRouterLinkSource, createCircuitV2, dataModel, signedSessions } = capability
const ofOldRouters = [createTerminatorV2, singleRouterLinkSource, createCircuitV2]

/** wire: not capability.groupedChannel: routers of 2.x then keep to one connection. */
const ofGroups = encodeBits([...ofOldRouters, dataModel, signedSessions])

/** Headers of the answer to a hello. */
export function answerOf(hello: RouterHello, ownId: string): Headers {
  const { features, formerConnectionId, group } = hello
  const controllerId = shownControllerId(formerConnectionId, ownId)
  const [version, revision, buildDate, os, arch] = [controllerVersionFor(features), '', '', '', '']
  // wire: routers of 2.x read their own key; the model in this one concerns routers from 1.3 to 1.7
  const bits = features.hasDataModel && !group ? [...ofOldRouters, dataModel] : ofOldRouters
  return new Map([
    [headerKey.connectionId, encodeText((group && formerConnectionId) || newConnectionId(controllerId))],
    [headerKey.version, encodeVersion({ version, revision, buildDate, os, arch })],
    [headerKey.id, encodeText(controllerId)],
    [headerKey.capabilities, encodeBits(bits)],
    ...(group ? groupOf(group) : []),
  ])
}

/** wire: a router drops a connection whose answer has another secret than its first answer, from whatever replica. */
const groupOf = ({ type, secret }: HelloGroup): [number, Buffer][] => [
  [headerKey.type, type],
  [groupedHeader.isGrouped, encodeBool(true)],
  [groupedHeader.secret, secret.length > 0 ? secret : randomBytes(SECRET_BYTES)],
  [groupedHeader.capabilities, ofGroups],
]
