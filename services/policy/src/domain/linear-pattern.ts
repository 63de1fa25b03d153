import { RE2JS } from 're2js'
import { LONGEST_PATTERN, MOST_PATTERN_SIZE, MOST_PATTERN_STEPS } from '../limits.js'
import { TooManySteps } from './schema-meter.js'

export interface Patterns {
  /** Replaces RegExp. Throws for what takes more than linear time, such as look-ahead and back references. */
  readonly compile: { (pattern: string, flags: string): { test(text: string): boolean }; code: string }
  /** Starts another document. */
  reset(): void
}

/** Patterns from foreign schemas, matched in linear time. */
export function openPatterns(): Patterns {
  let left = MOST_PATTERN_STEPS
  let total = 0
  const compile = (pattern: string) => {
    if (pattern.length > LONGEST_PATTERN)
      throw new Error(`has a pattern of more than ${LONGEST_PATTERN} characters`)
    const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern))
    const size = compiled.programSize()
    total += size
    if (total > MOST_PATTERN_SIZE) throw new Error('has patterns that are too large')
    return {
      toString: () => pattern,
      test(text: string): boolean {
        left -= size * (text.length + 1)
        if (left < 0) throw new TooManySteps('patterns take too many steps')
        return compiled.test(text)
      },
    }
  }
  return {
    compile: Object.assign(compile, { code: 'patterns' }),
    reset() {
      left = MOST_PATTERN_STEPS
    },
  }
}
