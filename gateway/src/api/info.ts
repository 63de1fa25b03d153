import { listOf, oneOf } from '@overlay/model/schema'
import { type Build, VERSION } from '../about.js'
import { prepareBody, sendPrepared } from '../http/send.js'
import { rootOf } from '../paths.js'
import type { Handlers } from './operations.js'
import { protocolsSchema, versionSchema } from './wire-schemas.js'

/** What anybody may know before a login. */
export function info(address: string, build: Build): Handlers {
  const v1 = (api: 'client' | 'management') => ({
    v1: { path: rootOf(api), apiBaseUrls: [`https://${address}${rootOf(api)}`] },
  })
  const version = {
    apiVersions: { edge: v1('client'), 'edge-client': v1('client'), 'edge-management': v1('management') },
    ...build,
    capabilities: [], // clients change their way of logging in by it: it names only what works
    runtimeVersion: `node${process.versions.node}`,
    version: VERSION,
  }
  const told = prepareBody(JSON.stringify({ data: version, meta: {} }))
  // wire: what any controller of this version could do, whatever this one does
  const known = ['OIDC_AUTH', 'HA_CONTROLLER']
  const capabilities = prepareBody(JSON.stringify({ data: known, meta: {} }))
  const protocols = prepareBody(JSON.stringify({ data: { https: { address } }, meta: {} }))
  const versionAbout = { data: versionSchema, envelope: 'listVersionEnvelope' }
  return {
    'GET /': { about: versionAbout, handle: (c) => sendPrepared(c, told) },
    'GET /version': { about: versionAbout, handle: (c) => sendPrepared(c, told) },
    'GET /enumerated-capabilities': {
      about: { data: listOf(oneOf(...known)), envelope: 'listEnumeratedCapabilitiesEnvelope' },
      handle: (c) => sendPrepared(c, capabilities),
    },
    'GET /protocols': {
      about: { data: protocolsSchema, envelope: 'listProtocolsEnvelope' },
      handle: (c) => sendPrepared(c, protocols),
    },
  }
}
