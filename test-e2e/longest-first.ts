import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Of files whose waits others fill. */
const longest = [
  'tests/key-rotation',
  'tests/ports',
  'cluster/upgrade',
  'interop/enrollment',
  'cluster/cluster',
  'interop/traffic',
  'kubernetes/manifests',
]

/** Their foreign programs are built while other tests run. */
const foreign = /test-e2e\/(cluster|interop|kubernetes)\//

const projects = ['e2e', 'manifests', 'service', 'unit', 'compiled']

/** Starts the files that take longest first, so that no processor waits for them at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => rankOf(a) - rankOf(b) || (a.moduleId < b.moduleId ? -1 : 1))
  }
}

function rankOf({ project, moduleId }: TestSpecification): number {
  const at = longest.findIndex((name) => moduleId.endsWith(`${name}.test.ts`))
  const group = 2 * projects.indexOf(project.name) + Number(project.name === 'e2e' && foreign.test(moduleId))
  return 100 * group + (at < 0 ? longest.length : at)
}
