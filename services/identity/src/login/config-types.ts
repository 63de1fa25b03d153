import type { Context } from '@overlay/rpc'
import type { Consumer } from '@overlay/store/change-log'

export interface ConfigTypes {
  /** Waits until the config types that the caller may name are stored here. */
  ready(context: Context): Promise<void>
}

/** `wasLoaded`: whether this schema has ever loaded the config types of policy. */
export function openConfigTypes(
  wasLoaded: () => Promise<boolean>,
  consumer: Pick<Consumer, 'waitFor' | 'catchUp'>,
): ConfigTypes {
  let isLoaded = false
  return {
    async ready(context) {
      const { policy } = context.positions
      if (policy) return consumer.waitFor(policy, context.signal)
      isLoaded ||= await wasLoaded()
      if (!isLoaded) await consumer.catchUp(context.signal)
      isLoaded = true
    },
  }
}
