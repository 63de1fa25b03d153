import type { Reporter, TestModule } from 'vitest/node'

/**
 * Prints a line for each file that has ended, with its number and the number of all files, and the counts of tests at
 * the end. Failures, which may appear before their file has ended, are up to another reporter.
 */
export function progress(print: (line: string) => void = console.log): Reporter {
  const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 }
  let [files, ended] = [0, 0]
  let startedAtMs = 0
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
  return {
    onTestRunStart(specifications) {
      files = specifications.length
      startedAtMs = performance.now()
      const names = specifications.map(({ project }) => project.name)
      const parts = [...new Set(names)].map(
        (name) => `${names.filter((other) => other === name).length} ${name}`,
      )
      print(`${files} files of tests: ${parts.join(', ')}`)
    },
    onTestModuleEnd(module) {
      ended += 1
      const results = resultsOf(module)
      for (const state of results) counts[state] += 1
      const failed = results.filter((state) => state === 'failed').length
      const outcome = module.ok() ? '' : failed > 0 ? `, ${failed} failed` : ', failed'
      const number = String(ended).padStart(String(files).length)
      const took = seconds(module.diagnostic().duration)
      print(
        `[${number}/${files}] ${module.project.name} ${module.relativeModuleId}: ${results.length} tests${outcome}, ${took}`,
      )
    },
    onTestRunEnd(modules, unhandledErrors) {
      // a file that cannot be loaded has no failed test, and an error may belong to no test
      const broken = modules.filter((module) => !module.ok() && !resultsOf(module).includes('failed')).length
      const failed = counts.failed + counts.pending + broken + unhandledErrors.length
      const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''
      print(
        `\n${counts.passed} passed, ${failed} failed${skipped} in ${seconds(performance.now() - startedAtMs)}`,
      )
    },
  }
}

const resultsOf = (module: TestModule) => [...module.children.allTests()].map((test) => test.result().state)
