/**
 * Typedefs that more than one module reads. No code.
 *
 * @typedef {{shape: number[] | null, dtype: string, device: string, requiresGrad: boolean, sizeBytes: number}} TensorSpec
 * @typedef {{file: string, line: number, function: string, code: string[], firstLine: number}} Source
 *
 * @typedef {Object} GraphNode
 * @property {number} id
 * @property {string} name
 * @property {"input"|"parameter"|"buffer"|"constant"|"op"|"opaque"|"output"} kind
 * @property {string | null} op
 * @property {number | null} call
 * @property {"ok"|"failed"} status
 * @property {number[]} outputs indices into specs
 * @property {[string, string][]} arguments
 * @property {number | null} source
 * @property {string | null} note
 * @property {Record<string, number>} metrics
 *
 * @typedef {Object} ModuleCall
 * @property {number} id
 * @property {string} name
 * @property {string | null} fqn
 * @property {string} type
 * @property {number | null} parent
 * @property {"ok"|"failed"} status
 * @property {number[]} inputs indices into specs
 * @property {number[]} outputs indices into specs
 * @property {string} detail
 * @property {number | null} source
 * @property {Record<string, number>} metrics
 * @property {number} [loop] of a round of a loop (loops.js), no call of a module: the first round
 *
 * @typedef {{tail: number, head: number, tailSlot: number, slot: string, spec: number}} GraphEdge
 * @typedef {{type: string, message: string, node: number | null, calls: number[], source: number | null, explanation: string, suggestions: string[]}} Failure
 *
 * @typedef {Object} Graph what decode() gives
 * @property {string} title
 * @property {string} generator
 * @property {TensorSpec[]} specs
 * @property {Source[]} sources
 * @property {ModuleCall[]} calls
 * @property {GraphNode[]} nodes
 * @property {GraphEdge[]} edges
 * @property {number[]} inputs
 * @property {number[]} outputs
 * @property {Failure | null} error
 * @property {Failure[]} errors all failures, the first is `error`
 * @property {string} report the failures as a Markdown report, to be copied; "" where there are none
 * @property {{operations: number, nodes: number, opaque: number, outside: number}} coverage
 * @property {{status: "passed"|"failed"|"not_applicable"|"not_run", reason: string}} proof
 *
 * What is seen at one moment: a tree of items and the tensors between the leaves of that tree.
 *
 * @typedef {Object} Item
 * @property {string} name unique: the name of the node or call; of a folded repeat, the name of its first call
 * @property {"node"|"call"|"repeat"} kind a repeat is a closed box that stands for `members` (call ids)
 * @property {number} id node id or call id (of a repeat: its first call)
 * @property {number | null} parent index of the enclosing item in VisibleGraph.items; null for the top level
 * @property {boolean} isOpen only calls can be open; an open call has children
 * @property {boolean} isOpenable a closed call that has anything inside, or a repeat
 * @property {number[]} members call ids that a repeat stands for; [] otherwise
 * @property {number} depth 0 at the top level
 *
 * @typedef {Object} Link one tensor from one visible leaf (node, closed call or repeat) to another
 * @property {number} tail index into items
 * @property {number} head index into items
 * @property {number} tailNode id of the graph node that made the tensor
 * @property {number} tailSlot
 * @property {number} spec index into specs
 * @property {string[]} slots arguments of the head that it fills
 *
 * @typedef {Object} VisibleGraph
 * @property {Item[]} items parents before children, otherwise in order of execution
 * @property {Link[]} links
 * @property {{constants: number, parameters: number, shapeOnly: number, dead: number}} hidden counts of what filters hide
 *
 * What is drawn, in px of the scene. y grows downwards.
 *
 * @typedef {Object} Box
 * @property {Item} item
 * @property {number} parent index into boxes, -1 at the top level
 * @property {number} x left
 * @property {number} y top
 * @property {number} width
 * @property {number} height
 * @property {number} headerHeight height of the title strip of an open call; 0 otherwise
 * @property {string} title what is written first (bold): attribute name, operator sign, operation name
 * @property {string} subtitle what is written beside it (muted): class name
 * @property {string} detail second line (muted, small), or ""
 * @property {string} badge for example ×12, or ""
 *
 * @typedef {Object} Route
 * @property {number} link index into VisibleGraph.links
 * @property {number} tail index into boxes
 * @property {number} head index into boxes
 * @property {number[]} points x0,y0,x1,y1,... ; see `curve`
 * @property {"bezier"|"line"} curve bezier: first point, then triples of control points (as SVG "C"); line: polyline, corners to be rounded
 * @property {boolean} isRail routed in a side gutter
 * @property {number} weight 0..1, share of the data that this tensor carries; thicker is more
 * @property {{text: string, x: number, y: number, width: number, height: number} | null} label x,y: top left
 *
 * @typedef {Object} Scene
 * @property {number} width
 * @property {number} height
 * @property {Box[]} boxes parents before children; the drawing order
 * @property {Route[]} routes
 * @property {VisibleGraph} visible
 * @property {{engine: "viz"|"simple", layoutMs: number, engineCalls: number, memoHits: number}} stats
 *
 * How a box is drawn is told by its item: `kind`, and for nodes the graph node's kind, status and op. Colours are chosen
 * when painting (theme), sizes when laying out (see measure.js).
 */
export {};
