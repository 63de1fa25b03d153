import { terminator } from '@overlay/model'
import { invalid, type ListQuery, notFound } from '@overlay/rpc'
import type { Consumer } from '@overlay/store/change-log'
import { type Kind, kind } from '@overlay/store/kind-store'
import { bestEffort } from '@overlay/store/postgres'
import { TERMINATOR_SERVICE_MS } from '../limits.js'
import { costsOf } from '../store/terminator-cost.js'

/** Names of services are copied from the changes of policy. */
export const terminators = (policyConsumer: Pick<Consumer, 'catchUp'>): Kind =>
  kind(
    terminator,
    {
      async view(db, rows, { perspective }) {
        const costs = await costsOf(
          db,
          rows.map(({ id }) => id),
        )
        return rows.map(({ id, service, router, hostId }) => ({
          dynamicCost: costs.get(id) ?? 0,
          serviceId: service,
          routerId: router,
          ...(perspective?.asFabric && { hostId }),
        }))
      },

      async writing(_tx, next, before, { exists, isWritten }) {
        const { address, router } = next
        if (address === '') throw invalid('address', 'address is required', address)
        if (!before && !exists('services', next.service)) throw notFound('service', next.service)
        if (isWritten('router') && !exists('transit-routers', router)) throw notFound('router', router)
        return {
          service: before?.service ?? next.service, // wire: PUT and PATCH accept another service and ignore it
          binding: next.binding || (address.startsWith('udp:') ? 'udp' : 'transport'),
        }
      },
    },
    {
      operations: (uniform) => ({
        async list(request, context) {
          if (usesServiceNames(request.query)) {
            const signal = AbortSignal.any([context.signal, AbortSignal.timeout(TERMINATOR_SERVICE_MS)])
            await bestEffort('policy', policyConsumer.catchUp(signal))
          }
          return uniform.list(request, context)
        },
      }),
    },
  )

const usesServiceNames = (query: ListQuery | undefined): boolean =>
  `${query?.filter} ${query?.sort}`.includes('service.name')
