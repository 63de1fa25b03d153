import { servicePolicy } from '@overlay/model'
import { yielder } from '@overlay/process/async'
import { Fault, invalid } from '@overlay/rpc'
import { type Kind, kind } from '@overlay/store/kind-store'
import { namesLinkedSets, withoutLinkedSets } from '../domain/linked-sets.js'
import type { Engine } from '../engine/engine.js'
import { accessSchemas } from '../engine/progress.js'

export const servicePolicies = (engine: Engine): Kind =>
  kind(servicePolicy, {
    async filter(filter, context) {
      if (!namesLinkedSets(filter)) return filter
      await engine.ensureReadable(context, accessSchemas)
      const withoutSets = await withoutLinkedSets(engine.state, filter, yielder())
      if (!withoutSets) throw new Fault('INVALID_FILTER', 'unsupported operation on identities or services')
      return withoutSets
    },

    async writing(_tx, { type }) {
      // wire: the documents have this word; it is refused under a name other than the member's
      if (type === 'Invalid')
        throw invalid('policyType', "invalid policy type. valid types are 'Dial' and 'Bind'", type)
      return {}
    },
  })
