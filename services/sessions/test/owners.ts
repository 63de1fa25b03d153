import type { ControlOwners } from '../src/concerns.js'
import type { fakeIdentity } from './access.js'
import { fakeModels, fakePki } from './models.js'

const unused = () => Promise.reject(new Error('not used here'))
const wiki = {
  ...{ id: 'wiki', name: 'wiki', terminatorStrategy: '' },
  ...{ encryptionRequired: false, maxIdleTimeMillis: 0 },
}

/** The services of a replica, which grant everybody the service `wiki` at these routers. */
export function ownersFor(
  identity: ReturnType<typeof fakeIdentity>,
  routerIds: string[],
  models: Pick<ReturnType<typeof fakeModels>, 'watchRouterModel'> = fakeModels(),
): ControlOwners {
  return {
    tokens: { verify: async () => undefined },
    identity: {
      source: identity.source,
      calls: {
        markActivity: async () => ({ unknownIds: [] }),
        reportConnections: async () => ({}),
        openRouterSession: unused,
      },
    },
    policy: {
      calls: {
        getHeader: unused,
        getIdentityRouters: async ({ identityIds }) => ({
          sets: [{ ids: routerIds }],
          setOf: identityIds.map(() => 0),
        }),
        getCommonRouters: async ({ pairs }) => ({ routers: pairs.map(() => ({ ids: routerIds })) }),
        watchRouterModel: models.watchRouterModel,
      },
      entities: { list: unused },
    },
    pki: fakePki(),
    grantWatch: {
      positions: () => ({}),
      onChange: () => undefined,
      lacksRouters: () => false,
    },
    policyHead: async () => ({}),
    heads: async () => ({}),
    services: {
      get: () => wiki,
      find: async () => wiki,
      findByName: async () => wiki,
      [Symbol.asyncDispose]: async () => undefined,
    },
    deleteRouter: unused,
    createSession: unused,
  }
}
