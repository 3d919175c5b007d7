// A box in space, such as a docking box, drawn as its edges.
import { Box3D } from 'molstar/lib/mol-math/geometry.js'
import { Vec3 } from 'molstar/lib/mol-math/linear-algebra.js'
import { addBoundingBox } from 'molstar/lib/mol-geo/geometry/mesh/builder/box.js'
import { Mesh } from 'molstar/lib/mol-geo/geometry/mesh/mesh.js'
import { MeshBuilder } from 'molstar/lib/mol-geo/geometry/mesh/mesh-builder.js'
import { Shape } from 'molstar/lib/mol-model/shape.js'
import { ShapeRepresentation } from 'molstar/lib/mol-repr/shape/representation.js'
import { Color } from 'molstar/lib/mol-util/color/index.js'
import type { Box } from '../molecule'

const thickness = 0.2 // ångströms
const colour = Color(0xd55e00)

/** Refills the same mesh when the box changes, because the representation keeps a reference to it. */
function shape(box: Box, before: Shape<Mesh> | undefined): Shape<Mesh> {
  const builder = MeshBuilder.createState(256, 128, before?.geometry)
  builder.currentGroup = 0 // the group that the color applies to
  const half = box.size.map((s) => s / 2)
  const corner = (sign: number) => Vec3.create(box.center[0] + sign * half[0]!, box.center[1] + sign * half[1]!, box.center[2] + sign * half[2]!)
  addBoundingBox(builder, Box3D.create(corner(-1), corner(1)), thickness, 1, 8)
  return Shape.create('Box', box, MeshBuilder.getMesh(builder), () => colour, () => 1, () => 'Box')
}

export const boxRepresentation = () => ShapeRepresentation((_ctx, box: Box, _props, before?: Shape<Mesh>) => shape(box, before), Mesh.Utils)
