import { listOf, oneOf } from '@overlay/model/schema'
import { Fault } from '@overlay/rpc'
import { sendData, wrapData } from '../http/envelope.js'
import type { MountedApi, RequestContext } from '../http/exchange.js'
import { accepts } from '../http/negotiate.js'
import { type Api, rootOf } from '../http/paths.js'
import { queryOf } from '../http/query.js'
import { type PreparedBody, prepareBody, sendPrepared } from '../http/send.js'
import { type ProgramInfo, VERSION } from '../http/version.js'
import { openApi2, openApi3, yamlOf } from '../openapi/document.js'
import type { Handlers } from './operations.js'
import { protocolsSchema, specSchema, versionSchema } from './wire-schemas.js'

/**
 * Information that needs no session. `announcesOidc`: SDKs that can sign in by OpenID Connect do. wire: some decide by the
 * capability and some by the path, so there is never one without the other.
 */
export function info(address: string, program: ProgramInfo, announcesOidc: boolean): Handlers {
  const v1 = (path: string) => ({ v1: { path, apiBaseUrls: [`https://${address}${path}`] } })
  const client = v1(rootOf('client'))
  const management = v1(rootOf('management'))
  const version = {
    apiVersions: {
      edge: client,
      'edge-client': client,
      'edge-management': management,
      ...(announcesOidc && { 'edge-oidc': v1('/oidc') }),
    },
    ...program,
    capabilities: announcesOidc ? ['OIDC_AUTH'] : [],
    version: VERSION,
  }
  const versionBody = prepareBody(wrapData(version))
  // wire: the capabilities that exist in this version, not those of this controller
  const capabilityNames = ['OIDC_AUTH', 'HA_CONTROLLER']
  const capabilitiesBody = prepareBody(wrapData(capabilityNames))
  const protocols = prepareBody(wrapData({ https: { address } }))
  const versionResponse = { data: versionSchema, envelope: 'listVersionEnvelope' }
  return {
    'GET /': { response: versionResponse, handle: (c) => sendPrepared(c, versionBody) },
    'GET /version': { response: versionResponse, handle: (c) => sendPrepared(c, versionBody) },
    'GET /enumerated-capabilities': {
      response: { data: listOf(oneOf(...capabilityNames)), envelope: 'listEnumeratedCapabilitiesEnvelope' },
      handle: (c) => sendPrepared(c, capabilitiesBody),
    },
    'GET /protocols': {
      response: { data: protocolsSchema, envelope: 'listProtocolsEnvelope' },
      handle: (c) => sendPrepared(c, protocols),
    },
  }
}

/** The documents of both APIs, built at the first request. */
export interface Documents {
  send(c: RequestContext, api: Api, version?: 2 | 3, form?: 'json' | 'yaml'): Response | Promise<Response>
}

export function documents(address: string, apis: () => readonly MountedApi<Api>[]): Documents {
  const bodies = new Map<string, PreparedBody>()

  function documentOf(name: Api, version: 2 | 3, form: 'json' | 'yaml'): PreparedBody {
    const key = `${name} ${version} ${form}`
    let body = bodies.get(key)
    if (body === undefined) {
      const api = apis().find((mounted) => mounted.api === name)
      if (!api) throw new Error(`no API '${name}'`)
      const document = version === 2 ? openApi2(api, address) : openApi3(api, address)
      body =
        form === 'json'
          ? prepareBody(JSON.stringify(document))
          : prepareBody(yamlOf(document).trimStart(), 'text/yaml')
      bodies.set(key, body)
    }
    return body
  }
  return {
    send: (c, api, version = 2, form = 'json') => sendPrepared(c, documentOf(api, version, form)),
  }
}

const names: Readonly<Record<string, Api>> = { 'edge-client': 'client', 'edge-management': 'management' }

export function specs(documents: Documents, { buildDate }: ProgramInfo): Handlers {
  const time = new Date(`${buildDate.replace(' ', 'T')}Z`).toISOString()
  const viewOf = (id: string) => ({
    id,
    createdAt: time,
    updatedAt: time,
    tags: {},
    _links: { self: { href: `./specs/${id}` }, spec: { href: `./specs/${id}/spec` } },
    name: id,
  })
  const apiOf = (id: string): Api => {
    const api = Object.hasOwn(names, id) ? names[id] : undefined
    if (!api) throw new Fault('NOT_FOUND')
    return api
  }
  return {
    'GET /specs': {
      response: { data: listOf(specSchema), envelope: 'listSpecsEnvelope' },
      // wire: the list has edge-client alone, in both APIs; by id, edge-management exists, too
      handle: (c) => sendData(c, [viewOf('edge-client')]),
    },
    'GET /specs/{id}': {
      response: { data: specSchema },
      handle: (c, { id }) => {
        apiOf(id)
        return sendData(c, viewOf(id))
      },
    },
    'GET /specs/{id}/spec': {
      produces: ['text/yaml', 'application/json'],
      query: [
        { name: 'version', type: 'string', oneOf: ['2', '3'], description: 'Of OpenAPI. Without it 2.' },
      ],
      handle: (c, { id }) => {
        const form = accepts(c.env.incoming, 'application/json') ? 'json' : 'yaml'
        const version = queryOf(c).get('version') === '3' ? 3 : 2
        return documents.send(c, apiOf(id), version, form)
      },
    },
  }
}
