import { chooseAny, type Strategy } from './strategy.js'

/** Every terminator with the same probability. */
export const openRandom = (): Strategy => ({ choose: chooseAny })
