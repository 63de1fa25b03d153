import { kinds, transitRouter } from '@overlay/model'
import type { GatewayCaches } from '../cache/caches.js'
import type { Services } from '../clients/services.js'
import type { MountedApi, RequestContext } from '../http/exchange.js'
import { type Api, isClosed, rootOf } from '../http/paths.js'
import type { ProgramInfo } from '../http/version.js'
import { type AuditLog, changes } from './audit.js'
import { authenticate } from './authenticate.js'
import { caCertificates, cas } from './cas.js'
import { clientLists, clientServices } from './client-lists.js'
import { database, fabricDatabase, summary } from './database.js'
import { inspections, tracing } from './diagnostics.js'
import { enroll } from './enroll.js'
import { typedEnroll } from './enroll-typed.js'
import { enrollmentKeys, enrollments } from './enrollments.js'
import { fabricCollections } from './fabric.js'
import { identities } from './identities.js'
import { documents, info, specs } from './info.js'
import { mfa } from './mfa.js'
import { audit, client, fabric, type Handlers, management } from './operations.js'
import { ownAuthenticators, ownCertificates } from './own-credentials.js'
import { posture } from './posture.js'
import { current, sessions } from './sessions.js'
import { uniform } from './uniform.js'

export interface ApisOptions {
  readonly services: Services
  readonly caches: GatewayCaches
  readonly address: string
  readonly program: ProgramInfo
  readonly announcesOidc: boolean
  readonly log: AuditLog
}

/** All APIs: their operations and handlers. */
export function apisOf(options: ApisOptions): readonly MountedApi<Api>[] {
  const { services, caches, address, program, announcesOidc, log } = options
  const docs = documents(address, () => apis)
  const everywhere: Handlers = {
    ...Object.assign({}, ...[...kinds.values()].map((entity) => uniform(entity, services))),
    ...uniform(transitRouter, services, 'routers'), // wire: the same collection under two names
    ...info(address, program, announcesOidc),
    ...caCertificates(services.pki, caches.onKeys),
    ...cas(services),
    ...specs(docs, program),
    ...authenticate(services, caches.sessions),
    ...current(services, caches),
    ...database(services),
    ...enroll(services),
    ...enrollmentKeys(services),
    ...typedEnroll(services),
    ...enrollments(services),
    ...identities(services),
    ...mfa(services, caches.sessions),
    ...ownAuthenticators(services),
    ...ownCertificates(services),
    ...posture(services),
    ...sessions(services, caches.written),
    ...summary(services),
    ...tracing(services),
  }
  const apis: readonly MountedApi<Api>[] = [
    {
      api: 'client',
      root: rootOf('client'),
      operations: client,
      handlers: {
        ...everywhere,
        ...clientServices(services, caches.headers, caches.lists),
        ...clientLists(services),
      },
    },
    { api: 'management', root: rootOf('management'), operations: management, handlers: everywhere },
    {
      api: 'fabric',
      root: rootOf('fabric'),
      operations: fabric,
      handlers: {
        ...database(services),
        ...fabricDatabase(services),
        ...fabricCollections(services),
        ...inspections(services),
      },
    },
    {
      api: 'audit',
      root: rootOf('audit'),
      operations: audit,
      handlers: changes(services, log),
    },
  ]
  return apis.map((mounted) => ({
    ...mounted,
    // wire: besides the published operations
    operations: {
      ...mounted.operations,
      'GET /swagger.json': isClosed(mounted.root) ? ('partial' as const) : ('none' as const),
    },
    handlers: {
      ...mounted.handlers,
      'GET /swagger.json': {
        produces: ['application/json'],
        handle: (c: RequestContext) => docs.send(c, mounted.api),
      },
    },
  }))
}
