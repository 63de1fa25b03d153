import type { Bus } from './bus.js'

/** For commands that run before anybody follows: followers find out by themselves. */
export const noBus: Bus = {
  publish: () => undefined,
  subscribe: () => ({ [Symbol.dispose]: () => undefined }),
  connected: () => false,
  onChange: () => ({ [Symbol.dispose]: () => undefined }),
  [Symbol.asyncDispose]: async () => undefined,
}
