;; The image handlers of Maia. Each export takes the address of a record
;;   number, height, width, channels, parameter (five 32-bit numbers), pixels
;; and returns the address of a record `height, width, channels, pixels`, or 0 when the frame is dropped.
;; What a handler cannot do with a frame ends in a trap.
(module
  (memory (export "memory") 1)
  (global $top (mut i32) (i32.const 1024))

  (func $alloc (export "alloc") (param $n i32) (result i32)
    (local $p i32) (local $have i32)
    (local.set $p (i32.and (i32.add (global.get $top) (i32.const 15)) (i32.const -16)))
    (global.set $top (i32.add (local.get $p) (local.get $n)))
    (local.set $have (i32.mul (memory.size) (i32.const 65536)))
    (if (i32.gt_u (global.get $top) (local.get $have))
      (then
        (if (i32.eq (i32.const -1)
              (memory.grow (i32.add (i32.const 1)
                (i32.shr_u (i32.sub (global.get $top) (local.get $have)) (i32.const 16)))))
          (then (unreachable)))))
    (local.get $p))

  (func $height (param $r i32) (result i32) (i32.load offset=4 (local.get $r)))
  (func $width (param $r i32) (result i32) (i32.load offset=8 (local.get $r)))
  (func $channels (param $r i32) (result i32) (i32.load offset=12 (local.get $r)))
  (func $parameter (param $r i32) (result i32) (i32.load offset=16 (local.get $r)))

  ;; a reply with room for its pixels
  (func $reply (param $h i32) (param $w i32) (param $c i32) (result i32)
    (local $p i32)
    (local.set $p (call $alloc (i32.add (i32.const 12)
      (i32.mul (local.get $c) (i32.mul (local.get $h) (local.get $w))))))
    (i32.store (local.get $p) (local.get $h))
    (i32.store offset=4 (local.get $p) (local.get $w))
    (i32.store offset=8 (local.get $p) (local.get $c))
    (local.get $p))

  ;; the frame as it came
  (func $copy (param $r i32) (result i32)
    (local $p i32)
    (local.set $p (call $reply (call $height (local.get $r)) (call $width (local.get $r)) (call $channels (local.get $r))))
    (memory.copy (i32.add (local.get $p) (i32.const 12)) (i32.add (local.get $r) (i32.const 20))
      (i32.mul (call $channels (local.get $r)) (i32.mul (call $height (local.get $r)) (call $width (local.get $r)))))
    (local.get $p))

  ;; one octet of brightness for each pixel: ITU-R 601-2, rounded
  (func $greyscale (export "greyscale") (param $r i32) (result i32)
    (local $p i32) (local $s i32) (local $d i32) (local $end i32)
    (if (i32.eq (call $channels (local.get $r)) (i32.const 1)) (then (return (call $copy (local.get $r)))))
    (if (i32.ne (call $channels (local.get $r)) (i32.const 3)) (then (unreachable)))
    (local.set $p (call $reply (call $height (local.get $r)) (call $width (local.get $r)) (i32.const 1)))
    (local.set $s (i32.add (local.get $r) (i32.const 20)))
    (local.set $d (i32.add (local.get $p) (i32.const 12)))
    (local.set $end (i32.add (local.get $d) (i32.mul (call $height (local.get $r)) (call $width (local.get $r)))))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $d) (local.get $end)))
      (i32.store8 (local.get $d) (i32.shr_u (i32.add (i32.const 32768) (i32.add (i32.add
        (i32.mul (i32.load8_u (local.get $s)) (i32.const 19595))
        (i32.mul (i32.load8_u offset=1 (local.get $s)) (i32.const 38470)))
        (i32.mul (i32.load8_u offset=2 (local.get $s)) (i32.const 7471)))) (i32.const 16)))
      (local.set $s (i32.add (local.get $s) (i32.const 3)))
      (local.set $d (i32.add (local.get $d) (i32.const 1)))
      (br $next)))
    (local.get $p))

  ;; the mean of each square of four pixels, rounded; a last odd row or column is left out
  (func (export "half-size") (param $r i32) (result i32)
    (local $p i32) (local $s i32) (local $d i32) (local $x i32) (local $y i32) (local $w i32) (local $h i32)
    (local $c i32) (local $k i32) (local $row i32)
    (local.set $c (call $channels (local.get $r)))
    (local.set $h (i32.shr_u (call $height (local.get $r)) (i32.const 1)))
    (local.set $w (i32.shr_u (call $width (local.get $r)) (i32.const 1)))
    (if (i32.eqz (i32.mul (local.get $h) (local.get $w))) (then (unreachable)))
    (local.set $p (call $reply (local.get $h) (local.get $w) (local.get $c)))
    (local.set $d (i32.add (local.get $p) (i32.const 12)))
    (local.set $row (i32.mul (call $width (local.get $r)) (local.get $c)))
    (block $rows (loop $down
      (br_if $rows (i32.ge_u (local.get $y) (local.get $h)))
      (local.set $s (i32.add (i32.add (local.get $r) (i32.const 20))
        (i32.mul (i32.shl (local.get $y) (i32.const 1)) (local.get $row))))
      (local.set $x (i32.const 0))
      (block $cells (loop $right
        (br_if $cells (i32.ge_u (local.get $x) (local.get $w)))
        (local.set $k (i32.const 0))
        (block $colours (loop $colour
          (br_if $colours (i32.ge_u (local.get $k) (local.get $c)))
          (i32.store8 (local.get $d) (i32.shr_u (i32.add (i32.const 2) (i32.add
            (i32.add (i32.load8_u (local.get $s)) (i32.load8_u (i32.add (local.get $s) (local.get $c))))
            (i32.add (i32.load8_u (i32.add (local.get $s) (local.get $row)))
                     (i32.load8_u (i32.add (i32.add (local.get $s) (local.get $row)) (local.get $c)))))) (i32.const 2)))
          (local.set $d (i32.add (local.get $d) (i32.const 1)))
          (local.set $s (i32.add (local.get $s) (i32.const 1)))
          (local.set $k (i32.add (local.get $k) (i32.const 1)))
          (br $colour)))
        (local.set $s (i32.add (local.get $s) (local.get $c)))
        (local.set $x (i32.add (local.get $x) (i32.const 1)))
        (br $right)))
      (local.set $y (i32.add (local.get $y) (i32.const 1)))
      (br $down)))
    (local.get $p))

  ;; left is right
  (func (export "mirror") (param $r i32) (result i32)
    (local $p i32) (local $s i32) (local $d i32) (local $x i32) (local $y i32) (local $w i32) (local $c i32) (local $k i32)
    (local.set $c (call $channels (local.get $r)))
    (local.set $w (call $width (local.get $r)))
    (local.set $p (call $reply (call $height (local.get $r)) (local.get $w) (local.get $c)))
    (local.set $s (i32.add (local.get $r) (i32.const 20)))
    (block $rows (loop $down
      (br_if $rows (i32.ge_u (local.get $y) (call $height (local.get $r))))
      (local.set $x (local.get $w))
      (block $cells (loop $left
        (br_if $cells (i32.eqz (local.get $x)))
        (local.set $x (i32.sub (local.get $x) (i32.const 1)))
        (local.set $d (i32.add (i32.add (local.get $p) (i32.const 12)) (i32.mul (local.get $c)
          (i32.add (i32.mul (local.get $y) (local.get $w)) (local.get $x)))))
        (local.set $k (i32.const 0))
        (block $colours (loop $colour
          (br_if $colours (i32.ge_u (local.get $k) (local.get $c)))
          (i32.store8 (i32.add (local.get $d) (local.get $k)) (i32.load8_u (local.get $s)))
          (local.set $s (i32.add (local.get $s) (i32.const 1)))
          (local.set $k (i32.add (local.get $k) (i32.const 1)))
          (br $colour)))
        (br $left)))
      (local.set $y (i32.add (local.get $y) (i32.const 1)))
      (br $down)))
    (local.get $p))

  ;; each pixel nine times, less the sum of the square around it, in grey; the border stays as it is
  (func (export "edges") (param $r i32) (result i32)
    (local $g i32) (local $p i32) (local $a i32) (local $d i32) (local $x i32) (local $y i32) (local $w i32) (local $h i32)
    (local $v i32)
    (local.set $g (call $greyscale (local.get $r)))
    (local.set $h (call $height (local.get $r)))
    (local.set $w (call $width (local.get $r)))
    (local.set $p (call $reply (local.get $h) (local.get $w) (i32.const 1)))
    (block $rows (loop $down
      (br_if $rows (i32.ge_u (local.get $y) (local.get $h)))
      (local.set $x (i32.const 0))
      (block $cells (loop $right
        (br_if $cells (i32.ge_u (local.get $x) (local.get $w)))
        (local.set $d (i32.add (i32.mul (local.get $y) (local.get $w)) (local.get $x)))
        (local.set $a (i32.add (i32.add (local.get $g) (i32.const 12)) (local.get $d)))
        (local.set $v (i32.load8_u (local.get $a)))
        (if (i32.and
              (i32.and (i32.gt_u (local.get $y) (i32.const 0)) (i32.lt_u (local.get $y) (i32.sub (local.get $h) (i32.const 1))))
              (i32.and (i32.gt_u (local.get $x) (i32.const 0)) (i32.lt_u (local.get $x) (i32.sub (local.get $w) (i32.const 1)))))
          (then
            (local.set $v (i32.sub (i32.mul (local.get $v) (i32.const 9)) (i32.add (i32.add
              (call $three (i32.sub (local.get $a) (local.get $w)))
              (call $three (local.get $a)))
              (call $three (i32.add (local.get $a) (local.get $w))))))
            (if (i32.lt_s (local.get $v) (i32.const 0)) (then (local.set $v (i32.const 0))))
            (if (i32.gt_s (local.get $v) (i32.const 255)) (then (local.set $v (i32.const 255))))))
        (i32.store8 (i32.add (i32.add (local.get $p) (i32.const 12)) (local.get $d)) (local.get $v))
        (local.set $x (i32.add (local.get $x) (i32.const 1)))
        (br $right)))
      (local.set $y (i32.add (local.get $y) (i32.const 1)))
      (br $down)))
    (local.get $p))

  (func $three (param $a i32) (result i32)
    (i32.add (i32.load8_u (i32.sub (local.get $a) (i32.const 1)))
      (i32.add (i32.load8_u (local.get $a)) (i32.load8_u offset=1 (local.get $a)))))

  ;; the octet at a place of a line of `n` octets that lie `step` apart; beyond its ends, the last one
  (func $octet (param $s i32) (param $at i32) (param $n i32) (param $step i32) (result i32)
    (if (i32.lt_s (local.get $at) (i32.const 0)) (then (local.set $at (i32.const 0))))
    (if (i32.ge_s (local.get $at) (local.get $n)) (then (local.set $at (i32.sub (local.get $n) (i32.const 1)))))
    (i32.load8_u (i32.add (local.get $s) (i32.mul (local.get $at) (local.get $step)))))

  ;; the mean of nine along a line, from `s` to `d`, rounded; a sum runs along
  (func $smooth (param $s i32) (param $d i32) (param $n i32) (param $step i32)
    (local $i i32) (local $sum i32)
    (local.set $i (i32.const -4))
    (block $summed (loop $tap
      (br_if $summed (i32.gt_s (local.get $i) (i32.const 4)))
      (local.set $sum (i32.add (local.get $sum) (call $octet (local.get $s) (local.get $i) (local.get $n) (local.get $step))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $tap)))
    (local.set $i (i32.const 0))
    (block $done (loop $next
      (br_if $done (i32.ge_s (local.get $i) (local.get $n)))
      (i32.store8 (i32.add (local.get $d) (i32.mul (local.get $i) (local.get $step)))
        (i32.shr_u (i32.add (i32.mul (local.get $sum) (i32.const 1864135)) (i32.const 8388608)) (i32.const 24)))
      (local.set $sum (i32.sub
        (i32.add (local.get $sum)
          (call $octet (local.get $s) (i32.add (local.get $i) (i32.const 5)) (local.get $n) (local.get $step)))
        (call $octet (local.get $s) (i32.sub (local.get $i) (i32.const 4)) (local.get $n) (local.get $step))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $next))))

  ;; a box of nine by nine, three times, inside a region: 0 whole, 1 upper, 2 lower, 3 left, 4 right half
  (func (export "blur") (param $r i32) (result i32)
    (local $p i32) (local $t i32) (local $c i32) (local $w i32) (local $x0 i32) (local $x1 i32) (local $y0 i32) (local $y1 i32)
    (local $where i32) (local $i i32) (local $end i32) (local $base i32) (local $row i32) (local $pass i32)
    (local.set $p (call $copy (local.get $r)))
    (local.set $t (call $copy (local.get $r)))
    (local.set $c (call $channels (local.get $r)))
    (local.set $w (call $width (local.get $r)))
    (local.set $x1 (local.get $w))
    (local.set $y1 (call $height (local.get $r)))
    (local.set $where (call $parameter (local.get $r)))
    (if (i32.gt_u (local.get $where) (i32.const 4)) (then (unreachable)))
    (if (i32.eq (local.get $where) (i32.const 1))
      (then (local.set $y1 (i32.shr_u (i32.add (local.get $y1) (i32.const 1)) (i32.const 1)))))
    (if (i32.eq (local.get $where) (i32.const 2)) (then (local.set $y0 (i32.shr_u (local.get $y1) (i32.const 1)))))
    (if (i32.eq (local.get $where) (i32.const 3))
      (then (local.set $x1 (i32.shr_u (i32.add (local.get $x1) (i32.const 1)) (i32.const 1)))))
    (if (i32.eq (local.get $where) (i32.const 4)) (then (local.set $x0 (i32.shr_u (local.get $x1) (i32.const 1)))))
    (local.set $row (i32.mul (local.get $w) (local.get $c)))
    (local.set $base (i32.add (i32.const 12) (i32.add (i32.mul (local.get $y0) (local.get $row))
      (i32.mul (local.get $x0) (local.get $c)))))
    (block $passes (loop $again
      (br_if $passes (i32.ge_u (local.get $pass) (i32.const 3)))
      ;; along rows, from the reply to the other copy: one line for each row and channel
      (local.set $i (i32.const 0))
      (local.set $end (i32.mul (i32.sub (local.get $y1) (local.get $y0)) (local.get $c)))
      (block $rows (loop $down
        (br_if $rows (i32.ge_u (local.get $i) (local.get $end)))
        (call $smooth
          (i32.add (i32.add (local.get $p) (local.get $base)) (i32.add (i32.rem_u (local.get $i) (local.get $c))
            (i32.mul (i32.div_u (local.get $i) (local.get $c)) (local.get $row))))
          (i32.add (i32.add (local.get $t) (local.get $base)) (i32.add (i32.rem_u (local.get $i) (local.get $c))
            (i32.mul (i32.div_u (local.get $i) (local.get $c)) (local.get $row))))
          (i32.sub (local.get $x1) (local.get $x0)) (local.get $c))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $down)))
      ;; along columns, back: one line for each octet of a row
      (local.set $i (i32.const 0))
      (local.set $end (i32.mul (i32.sub (local.get $x1) (local.get $x0)) (local.get $c)))
      (block $columns (loop $right
        (br_if $columns (i32.ge_u (local.get $i) (local.get $end)))
        (call $smooth
          (i32.add (i32.add (local.get $t) (local.get $base)) (local.get $i))
          (i32.add (i32.add (local.get $p) (local.get $base)) (local.get $i))
          (i32.sub (local.get $y1) (local.get $y0)) (local.get $row))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $right)))
      (local.set $pass (i32.add (local.get $pass) (i32.const 1)))
      (br $again)))
    (local.get $p))

  ;; one of so many frames
  (func (export "frame-rate") (param $r i32) (result i32)
    (if (i32.rem_u (i32.load (local.get $r)) (call $parameter (local.get $r))) (then (return (i32.const 0))))
    (call $copy (local.get $r))))
