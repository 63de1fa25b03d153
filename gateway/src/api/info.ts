import { listOf, oneOf } from '@overlay/model/schema'
import { rootOf } from '../http/paths.js'
import { prepareBody, sendPrepared } from '../http/send.js'
import { type About, VERSION } from '../http/version.js'
import type { Handlers } from './operations.js'
import { protocolsSchema, versionSchema } from './wire-schemas.js'

/** Information that needs no session. */
export function info(address: string, about: About): Handlers {
  const v1 = (api: 'client' | 'management') => ({
    v1: { path: rootOf(api), apiBaseUrls: [`https://${address}${rootOf(api)}`] },
  })
  const version = {
    apiVersions: { edge: v1('client'), 'edge-client': v1('client'), 'edge-management': v1('management') },
    ...about,
    capabilities: ['OIDC_AUTH'],
    version: VERSION,
  }
  const versionBody = prepareBody(JSON.stringify({ data: version, meta: {} }))
  // wire: the capabilities that exist in this version, not those of this controller
  const capabilityNames = ['OIDC_AUTH', 'HA_CONTROLLER']
  const capabilitiesBody = prepareBody(JSON.stringify({ data: capabilityNames, meta: {} }))
  const protocols = prepareBody(JSON.stringify({ data: { https: { address } }, meta: {} }))
  const versionAbout = { data: versionSchema, envelope: 'listVersionEnvelope' }
  return {
    'GET /': { about: versionAbout, handle: (c) => sendPrepared(c, versionBody) },
    'GET /version': { about: versionAbout, handle: (c) => sendPrepared(c, versionBody) },
    'GET /enumerated-capabilities': {
      about: { data: listOf(oneOf(...capabilityNames)), envelope: 'listEnumeratedCapabilitiesEnvelope' },
      handle: (c) => sendPrepared(c, capabilitiesBody),
    },
    'GET /protocols': {
      about: { data: protocolsSchema, envelope: 'listProtocolsEnvelope' },
      handle: (c) => sendPrepared(c, protocols),
    },
  }
}
