import type { Bus } from './bus.js'

/** For commands that run before the services. Followers need no notifications. */
export const noBus: Bus = {
  publish: () => undefined,
  subscribe: () => ({ [Symbol.dispose]: () => undefined }),
  connected: () => false,
  onChange: () => ({ [Symbol.dispose]: () => undefined }),
  [Symbol.asyncDispose]: async () => undefined,
}
